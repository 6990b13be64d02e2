# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Of the reports' own repositories, what the recipes look for in a checkout: folders, lists, and scripts with lines where a recipe edits some. All of them
# in one folder, which is as good as any of theirs: made_up_code FOLDER.
at_line() { # FILE LINE TEXT: fills up to it
    while [ "$(wc -l <"$1")" -lt $(($2 - 1)) ]; do echo : >>"$1"; done
    echo "$3" >>"$1"
}
# shellcheck disable=SC2016 # for the scripts
made_up_bert() { # FOLDER
    local tf="$1/TensorFlow/LanguageModeling/BERT/scripts/run_pretraining_lamb.sh" torch="$1/PyTorch/LanguageModeling/BERT/scripts/run_pretraining.sh"
    : >"$tf"
    at_line "$tf" 58 'bash scripts/run_pretraining_lamb_phase1.sh "$@" |& cat'
    at_line "$tf" 60 'bash scripts/run_pretraining_lamb_phase2.sh "$@" |& cat'
    cat >"${tf%.sh}_phase1.sh" <<'SH'
mpi=""
if [ $8 -gt 1 ]; then
   mpi="mpiexec --allow-run-as-root -np $8 --bind-to socket"
fi
grep -q '"hidden_size": 768' data/download/nvidia_pretrained/bert_tf_squad11_base_128/bert_config.json || exit 1
SH
    at_line "${tf%.sh}_phase1.sh" 81 'input=data/tfrecord/lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5_shard_1472_test_split_10/books_wiki_en_corpus/training'
    at_line "${tf%.sh}_phase1.sh" 90 ' $mpi python /workspace/bert/run_pretraining.py --train_batch_size=$1 --num_accumulation_steps=${13} --input_files_dir=$input'
    : >"$torch"
    at_line "$torch" 37 'DATASET=hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5_shard_1472_test_split_10/books_wiki_en_corpus/training'
    at_line "$torch" 39 'BERT_CONFIG=bert_config.json'
    at_line "$torch" 40 'train_batch_size=$1 num_gpus=$4 accumulate=${10} steps=${11}'
    at_line "$torch" 41 'CMD=" /workspace/bert/run_pretraining.py --train_batch_size=$train_batch_size --config_file=$BERT_CONFIG --input_dir=data/$DATASET"'
    at_line "$torch" 42 '[ "$accumulate" != true ] || CMD+=" --gradient_accumulation_steps=$steps"'
    at_line "$torch" 110 'CMD+=" --bert_model=bert-large-uncased"'
    at_line "$torch" 120 'if [ "$num_gpus" -gt 1 ] ; then'
    at_line "$torch" 121 '   CMD="python3 -m torch.distributed.launch --nproc_per_node=$num_gpus $CMD"'
    at_line "$torch" 122 'else'
    at_line "$torch" 123 '   CMD="python3  $CMD"'
    at_line "$torch" 124 'fi'
    at_line "$torch" 150 '[ -f "$BERT_CONFIG" ] && $CMD'
    at_line "$torch" 160 'python3 phase2.py'
}
made_up_code() { # FOLDER
    local S=$1 D="$1/official/vision/image_classification/configs/examples/resnet/imagenet" name
    mkdir -p "$S/PaddleNLP/benchmark/bert" "$S"/{TensorFlow,PyTorch}/Classification/ConvNets "$S"/{TensorFlow,PyTorch}/LanguageModeling/BERT/{scripts,data} "$S/MxNet/Classification/RN50v1.5"
    mkdir -p "$S/result_v0.1/software/train/pytorch_samples/linux/deeplabv3plus/code/mmsegmentation/tools" "$D" "$S/ResNet50V1.5/scripts" "$S/Tensorflow/resnet50v1.5/scripts"
    touch "$S/MxNet/Classification/RN50v1.5/benchmark.py" "$S/requirements.txt" "$S"/PaddleNLP/requirements.txt "$S"/{TensorFlow,PyTorch}/Classification/ConvNets/requirements.txt "$S/official/requirements.txt"
    touch "$S/ResNet50V1.5/scripts/ResNet50_1gpu_fp32_bs96.yaml" "$D/gpu.yaml"
    touch "$S"/{TensorFlow,PyTorch}/LanguageModeling/BERT/data/README.md # git keeps no empty folder
    for name in two_node_gpu multi_node_gpu; do echo "  worker_hosts: 'nobody'" >"$S/Tensorflow/resnet50v1.5/scripts/$name.yaml"; done
    made_up_bert "$S"
}
# What a rehearsal, too, takes as it is, such as weights: put where a person would put the file, since no network has it here.
made_up_original() { # DATASET FOLDER: "$REPERF_STORE" has been used before
    local about=datasets/$1/dataset.json name path
    name=$(jq -r '.files[0].name' "$about") path=$2/$(jq -r '.groups[0].glob' "$about")
    mkdir -p "${path%/*}" && echo "made up for a test" >"$path"
    if [ "$(jq -r '.files[0].unpack' "$about")" = null ]; then
        cp "$path" "$REPERF_STORE/incoming/$name"
    else
        tar -C "$2" -czf "$REPERF_STORE/incoming/$name" .
    fi
}
