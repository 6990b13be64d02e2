/* SPDX-License-Identifier: Apache-2.0 */
/* The places of operands in kernel_args.in and .out, for the kernels that have more than two: what core/kernel.h lists, by name. NAME_IN
   is a place of in, NAME_OUT one of out. What kernels have in common lies at the same place in all of them. */
#pragma once

/* K_CONV_FWD, K_LINEAR_FWD; K_CONV_STATS_FWD has scale and shift for a bias, and two sums. */
enum { FWD_X_IN, FWD_W_IN, FWD_BIAS_IN, FWD_SCALE_IN = 2, FWD_SHIFT_IN };
enum { FWD_Y_OUT, FWD_SUM_OUT, FWD_SQUARES_OUT };

/* K_CONV_BWD_DATA, K_LINEAR_BWD_DATA; K_CONV_BWD_DATA_BN from x on, with dz in the place of dx. */
enum {
    DATA_DY_IN,
    DATA_W_IN,
    DATA_X_IN,
    DATA_GAMMA_IN,
    DATA_BETA_IN,
    DATA_MEAN_IN,
    DATA_RSTD_IN,
    DATA_DA_IN,
    DATA_A_IN
};
enum { DATA_DX_OUT, DATA_DZ_OUT = 0, DATA_SUM_DZ_OUT, DATA_SUM_HAT_OUT };

/* K_CONV_BWD_WEIGHT, K_LINEAR_BWD_WEIGHT; K_NORM_CONV_BWD_WEIGHT with scale and shift. */
enum { WEIGHT_DY_IN, WEIGHT_X_IN, WEIGHT_SCALE_IN, WEIGHT_SHIFT_IN };
enum { WEIGHT_DW_OUT, WEIGHT_DBIAS_OUT };

/* K_BN_FWD, K_BN_ADD_FWD, K_LAYER_NORM_FWD; K_DROP_ADD_NORM_FWD with the sum in the place of the running mean. */
enum { NORM_X_IN, NORM_GAMMA_IN, NORM_BETA_IN, NORM_A_IN, NORM_STEP_IN };
enum {
    NORM_Y_OUT,
    NORM_MEAN_OUT,
    NORM_RSTD_OUT,
    NORM_RUNNING_MEAN_OUT,
    NORM_RUNNING_VAR_OUT,
    NORM_SUM_OUT = NORM_RUNNING_MEAN_OUT
};

/* K_BN_BWD, K_BN_ADD_BWD, K_LAYER_NORM_BWD; K_BN_BWD_APPLY with dz in the place of dy, and two sums; K_DROP_ADD_NORM_BWD with the
   sum in the place of x, and the step. */
enum {
    NORM_BWD_DY_IN,
    NORM_BWD_X_IN,
    NORM_BWD_GAMMA_IN,
    NORM_BWD_MEAN_IN,
    NORM_BWD_RSTD_IN,
    NORM_BWD_Y_IN,
    NORM_BWD_BETA_IN,
    NORM_BWD_STEP_IN = 5,
    NORM_BWD_DZ_IN = 0,
    NORM_BWD_SUM_DZ_IN = 5,
    NORM_BWD_SUM_HAT_IN
};
enum { NORM_BWD_DX_OUT, NORM_BWD_DGAMMA_OUT, NORM_BWD_DBETA_OUT, NORM_BWD_DA_OUT };

/* K_BN_FINALIZE */
enum { FINALIZE_SUM_IN, FINALIZE_SQUARES_IN, FINALIZE_GAMMA_IN, FINALIZE_BETA_IN };
enum {
    FINALIZE_MEAN_OUT,
    FINALIZE_RSTD_OUT,
    FINALIZE_SCALE_OUT,
    FINALIZE_SHIFT_OUT,
    FINALIZE_RUNNING_MEAN_OUT,
    FINALIZE_RUNNING_VAR_OUT
};

/* K_BN_APPLY: five for x, and five for what is added. */
enum { APPLY_X_IN, APPLY_GAMMA_IN, APPLY_BETA_IN, APPLY_MEAN_IN, APPLY_RSTD_IN, APPLY_A_IN };
enum { APPLY_A_GAMMA_IN = APPLY_A_IN + 1, APPLY_A_MEAN_IN = APPLY_A_IN + 3, APPLY_A_RSTD_IN };
enum { APPLY_Y_OUT };

/* K_LOSS_FWD and K_ROW_LOSS, whose gradient is in the place of the probabilities; K_UPSAMPLE_LOSS_FWD and _BWD. */
enum { LOSS_LOGITS_IN, LOSS_LABELS_IN, LOSS_LSE_IN, LOSS_N_LABELS_IN };
enum { LOSS_LOSS_OUT, LOSS_PROB_OUT, LOSS_GRAD_OUT = 1, LOSS_LSE_OUT = 1, LOSS_N_LABELS_OUT };

enum { EMBED_IDS_IN, EMBED_SEGMENTS_IN, EMBED_WORD_IN, EMBED_POSITION_IN, EMBED_SEGMENT_IN };
enum { EMBED_BWD_DY_IN, EMBED_BWD_IDS_IN, EMBED_BWD_SEGMENTS_IN };
enum { EMBED_BWD_DWORD_OUT, EMBED_BWD_DPOSITION_OUT, EMBED_BWD_DSEGMENT_OUT };

enum { ATTEND_QKV_IN, ATTEND_MASK_IN, ATTEND_STEP_IN };
enum { ATTEND_CONTEXT_OUT, ATTEND_LSE_OUT };
enum {
    ATTEND_BWD_DCONTEXT_IN,
    ATTEND_BWD_QKV_IN,
    ATTEND_BWD_MASK_IN,
    ATTEND_BWD_CONTEXT_IN,
    ATTEND_BWD_LSE_IN,
    ATTEND_BWD_STEP_IN
};

#define OPERAND_BIT(place) (1U << (place))
