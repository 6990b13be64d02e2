/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/launch_options.h"

#include "base/str.h"
#include "report/container.h"

/* Spellings of options. Sources, read 2026-11: mpirun(1) of Open MPI 4.1 and MPICH 4; `horovodrun --help` 0.28;
   torch.distributed.run 2.3 and torch.distributed.launch 1.6; paddle.distributed.launch 1.8 to 2.6; deepspeed 0.14; accelerate
   0.30; srun(1) 23.02; training programs of PaddleSeg, PaddleClas, PaddleNLP, NVIDIA DeepLearningExamples, mmsegmentation,
   Hugging Face transformers, timm, torchvision references, Megatron-LM, fairseq, Lightning, MXNet gluon-cv and TensorFlow
   models. */

#define OF_LAUNCHERS (OF_TORCH | OF_PADDLE | OF_DEEPSPEED | OF_ACCELERATE)

enum { /* whose option */
       OF_MPI = 1,
       OF_HOROVOD = 2,
       OF_TORCH = 4,
       OF_PADDLE = 8,
       OF_DEEPSPEED = 16,
       OF_ACCELERATE = 32,
       OF_SLURM = 64,
       OF_TRAINING = 128, /* of the program that trains */
       OF_SET = 512,      /* only the name of a variable */
       OF_SHORT =
           256 /* the same, if it surely is one: the letter means other things to other programs */
};

struct option_spelling {
    enum meaning means;
    unsigned of;
    /* Separated by blanks; only lower-case letters and digits: num_workers, --numWorkers and num-workers are one; a single
       letter as it is. */
    const char *names;
};

static const struct {
    unsigned of;
    const char *names;
} LAUNCHERS[] = {{OF_MPI, "mpirun mpiexec mpiexec.hydra mpirun.openmpi orterun prterun"},
                 {OF_HOROVOD, "horovodrun"},
                 {OF_TORCH, "torchrun torch.distributed.launch torch.distributed.run "
                            "torch.distributed.elastic.launch oneflow.distributed.launch "
                            "multiproc.py launch.py colossalai composer"},
                 {OF_PADDLE, "paddle.distributed.launch paddle.distributed.fleet.launch fleetrun"},
                 {OF_DEEPSPEED, "deepspeed"},
                 {OF_ACCELERATE, "accelerate accelerate.commands.launch"},
                 {OF_SLURM, "srun"},
                 {0, "nsys nvprof"}}; /* profilers, whose options are none of these */

/* Programs whose options are not among these, in addition to container engines. */
static const char OTHER_PROGRAMS[] =
    "pip pip3 conda make cmake ninja apt apt-get yum git wget curl tar unzip nvidia-smi xargs "
    "parallel seq head tail sort echo printf awk sed grep ssh scp cd mkdir export cat tee rsync "
    "ncu test [ [[ sleep for while until done";

static const struct option_spelling OPTION_SPELLINGS[] = {
    {MEANS_RANKS, OF_MPI | OF_HOROVOD, "np"},
    {MEANS_RANKS, OF_MPI | OF_SLURM, "n"},
    {MEANS_RANKS, OF_MPI, "c"},
    {MEANS_RANKS, OF_HOROVOD, "numproc"},
    {MEANS_RANKS, OF_SLURM, "ntasks"},
    {MEANS_RANKS, OF_ACCELERATE, "numprocesses"},
    {MEANS_RANKS, OF_TRAINING, "worldsize"},
    {MEANS_RANKS_PER_NODE, OF_MPI, "npernode N ppn perhost"},
    {MEANS_RANKS_PER_NODE, OF_MPI | OF_SLURM, "ntaskspernode"},
    {MEANS_RANKS_PER_NODE, OF_TORCH | OF_PADDLE | OF_TRAINING, "nprocpernode"},
    {MEANS_RANKS_PER_NODE, OF_TORCH, "nproc"},
    {MEANS_RANKS_PER_NODE, OF_DEEPSPEED, "numgpus"},
    {MEANS_RANKS_PER_NODE, OF_SLURM | OF_TRAINING, "gpuspernode"},
    {MEANS_NODES, OF_LAUNCHERS | OF_TRAINING, "nnodes"},
    {MEANS_NODES, OF_TORCH, "nnode"},
    {MEANS_NODES, OF_DEEPSPEED | OF_TRAINING, "numnodes"},
    {MEANS_NODES, OF_ACCELERATE, "nummachines"},
    {MEANS_NODES, OF_SLURM, "nodes N"},
    {MEANS_HOSTS, OF_MPI | OF_HOROVOD, "H hosts"},
    {MEANS_HOSTS, OF_MPI, "host"},
    {MEANS_HOSTS, OF_PADDLE, "ips clusternodeips"},
    {MEANS_DEVICES, OF_PADDLE, "gpus devices"},
    {MEANS_DEVICES, OF_PADDLE | OF_TRAINING, "selectedgpus"},
    {MEANS_DEVICES, OF_ACCELERATE | OF_TRAINING, "gpuids"},
    {MEANS_DEVICE, OF_TRAINING, "gpu gpuid gpuindex device deviceid cudadevice"},
    {MEANS_GPUS, OF_TRAINING, "gpus devices numgpus ngpus ngpu numgpu gpunum gpucount numdevices"},
    {MEANS_DEVICES, OF_SET,
     "cudavisibledevices nvidiavisibledevices hipvisibledevices rocrvisibledevices nvgpu"},
    {MEANS_NODE_RANK, OF_SET, "rank machinerank grouprank paddletrainerid nodeid slurmnodeid"},
    {MEANS_NODE_ADDRESS, OF_SET, "podip currentnode hostip localip"},
    {MEANS_NODE_RANK, OF_LAUNCHERS | OF_TRAINING, "noderank"},
    {MEANS_NODE_RANK, OF_ACCELERATE, "machinerank"},
    {MEANS_NODE_ADDRESS, OF_PADDLE | OF_TRAINING, "nodeip currentnodeip"},
    {MEANS_NODE_ADDRESS, OF_PADDLE, "host"},
    {MEANS_NODE_ADDRESS, OF_TORCH, "localaddr"},
    {MEANS_BATCH, OF_SHORT, "b"},
    {MEANS_BATCH, OF_TRAINING,
     "bs bz bsz mbs gbs batch batchsize trainbs trainbatch trainbatchsize"
     " batchsizetrain trainingbatchsize batchpergpu batchperdevice batchsizepergpu"
     " batchsizepercard batchsizeperdevice batchsizeperdevicetrain pergpubatchsize"
     " pergputrainbatchsize perdevicebatchsize perdevicetrainbatchsize"
     " devicebatchsize localbatchsize microbatchsize minibatchsize"
     " trainmicrobatchsizepergpu globalbatchsize totalbatchsize samplespergpu"
     " imgspergpu imagespergpu imsperbatch"},
    {MEANS_ITERATIONS, OF_TRAINING,
     "iters niter niters maxiter maxiters maxiterations numiter numiters"
     " numiterations iterations totaliters trainiters steps nsteps maxstep"
     " maxsteps numsteps totalsteps trainsteps numtrainsteps maxtrainsteps"
     " maxupdate"},
    {MEANS_LOG_INTERVAL, OF_TRAINING,
     "logiters loggingsteps logsteps logfreq logevery logeverynsteps loginterval"
     " logstep printstep printfreq printinterval displaysteps displayevery"},
    {MEANS_WORKERS, OF_SHORT, "j"},
    {MEANS_WORKERS, OF_TRAINING,
     "nw workers nworkers numworkers workerspergpu dataworkers numdataworkers"
     " loaderworkers dataloaderworkers dataloadernumworkers numdataloaderworkers"},
    {MEANS_IMAGES, OF_TRAINING, "totalimages numtrainimages numtrainingimages"},
    {MEANS_SEED, OF_TRAINING,
     "seed randomseed randseed manualseed rngseed globalseed trainseed"
     " seedeverything"},
    {MEANS_HALF, OF_TRAINING,
     "fp16 bf16 half amp autocast useamp usefp16 usetfamp nativeamp purefp16"
     " usepurefp16 usepurefp16training usemixedprecision"},
    {MEANS_PRECISION, OF_TRAINING,
     "prec precision dtype datatype torchdtype optlevel ampoptlevel amplevel"},
    {MEANS_PRECISION, OF_TRAINING | OF_ACCELERATE, "mixedprecision"},
    {MEANS_CONFIG, OF_SHORT, "c"},
    {MEANS_CONFIG, OF_TRAINING, "config configfile configname cfg"},
};

#define NAME_BYTES_MAX 40
#define KEY_BYTES_MAX  160 /* of an override, with its sections */

bool launcher_of(struct str program, unsigned *ret_of)
{
    size_t idx = 0;
    while (idx < ARRAY_LEN(LAUNCHERS) && !is_word_of(program, LAUNCHERS[idx].names)) {
        idx++;
    }
    *ret_of = idx < ARRAY_LEN(LAUNCHERS) ? LAUNCHERS[idx].of : 0;
    return idx < ARRAY_LEN(LAUNCHERS);
}

/* Whose options the run's words are; 0: none of the known ones. */
static unsigned owner_of(const struct shell_run *run)
{
    struct str program = shell_program(run);
    struct str first = run->n ? run->words[0].text : STR_EMPTY;
    bool is_script = str_ends(program, STR_LIT(".py")) || !str_eq(program, path_base(first)) ||
                     str_starts(first, STR_LIT("./")) || run->is_inner;
    unsigned of;
    if (launcher_of(program, &of)) {
        return of;
    }
    if (!run->n || container_is_engine(run->words[0].text) || shell_is(run, OTHER_PROGRAMS)) {
        return 0;
    }
    return is_script && !str_ends(program, STR_LIT(".sh")) ? OF_TRAINING | OF_SHORT : OF_TRAINING;
}

bool option_is_launcher(const struct shell_run *run)
{
    unsigned of = owner_of(run);
    return of && !(of & OF_TRAINING);
}

bool option_is_training(const struct shell_run *run)
{
    return (owner_of(run) & OF_TRAINING) != 0;
}

/* Without dashes and underscores, in lower case; a single letter as it is. False if it is too long. */
static bool plain_name(struct str spelled, char *ret, size_t size)
{
    size_t len = 0;
    for (size_t idx = 0; idx < spelled.len; idx++) {
        char c = spelled.ptr[idx];
        if (c == '-' || c == '_') {
            continue;
        }
        if (len + 1 == size) {
            return false;
        }
        ret[len++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    if (len == 1) {
        ret[0] = spelled.ptr[spelled.len - 1];
    }
    ret[len] = '\0';
    return len > 0;
}

static const struct option_spelling *spelling_of(struct str spelled, unsigned of)
{
    char name[NAME_BYTES_MAX];
    if (!plain_name(spelled, name, sizeof(name)) || (name[1] == '\0' && spelled.len != 2)) {
        return NULL;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(OPTION_SPELLINGS); idx++) {
        struct str names = str_of(OPTION_SPELLINGS[idx].names);
        struct str each;
        while ((OPTION_SPELLINGS[idx].of & of) && str_next(&names, ' ', &each)) {
            if (str_eq_z(each, name)) {
                return &OPTION_SPELLINGS[idx];
            }
        }
    }
    return NULL;
}

static struct str last_part(struct str key)
{
    for (size_t idx = key.len; idx > 0; idx--) {
        if (key.ptr[idx - 1] == '.' || key.ptr[idx - 1] == '/' || key.ptr[idx - 1] == '+') {
            return str_sub(key, idx, SIZE_MAX);
        }
    }
    return key;
}

static bool is_dashed(struct str word)
{
    return word.len > 1 && word.ptr[0] == '-' && !is_digit(word.ptr[1]);
}

/* --name, --name=VALUE, -b128; and section.key=VALUE, as hydra, mmcv, PaddleClas -o and --params_override take it. */
static bool read_word(struct str word, unsigned of, struct option_found *ret)
{
    bool is_option = is_dashed(word);
    size_t end = str_cspan(word, 0, "=");
    struct str spelled = str_sub(word, 0, end);
    struct str value = end < word.len ? str_sub(word, end + 1, SIZE_MAX) : STR_EMPTY;
    const struct option_spelling *row = NULL;
    if (is_option) {
        row = spelling_of(spelled, of);
    } else if (value.ptr && end <= KEY_BYTES_MAX && last_part(spelled).len > 1) {
        row = spelling_of(last_part(spelled), of & ~(unsigned)OF_SHORT);
    }
    if (!row && is_option && word.len > 2 && is_digit(word.ptr[2])) {
        spelled = str_sub(word, 0, 2);
        value = str_sub(word, 2, SIZE_MAX);
        row = spelling_of(spelled, of);
    }
    if (row) {
        *ret = (struct option_found){row->means, spelled, value};
    }
    return row != NULL;
}

/* The next word, or more in a list: `--gpus 0 1 2`, `--gpu-ids 4 5`. False: the option lacks a value that it needs. */
static bool take_value(struct arena *arena, const struct shell_run *run, size_t *at,
                       struct option_found *option)
{
    static const char CLAIMS[] = "true false True False TRUE FALSE 0 1 yes no";
    bool is_list = option->means == MEANS_DEVICES || option->means == MEANS_GPUS;
    struct str next = *at < run->n_own ? run->words[*at].text : STR_EMPTY;
    if (option->means == MEANS_HALF && !is_word_of(next, CLAIMS)) {
        return true;
    }
    if (!next.ptr || is_dashed(next)) {
        return option->means == MEANS_HALF;
    }
    option->value = next;
    while (++*at < run->n_own && is_list && next.len && run->words[*at].text.len &&
           is_digit(run->words[*at].text.ptr[0])) {
        option->value =
            str_printf(arena, "%.*s,%.*s", STR_ARG(option->value), STR_ARG(run->words[*at].text));
    }
    return true;
}

bool option_next(struct arena *arena, const struct shell_run *run, size_t *at,
                 struct option_found *ret_option)
{
    unsigned of = owner_of(run);
    *at = *at ? *at : 1;
    while (of && *at < run->n_own) {
        struct str word = run->words[(*at)++].text;
        size_t inner = is_dashed(word) ? str_cspan(word, 0, "=") + 1 : word.len;
        struct option_found option;
        if ((read_word(word, of, &option) ||
             (inner < word.len && !is_dashed(str_sub(word, inner, SIZE_MAX)) &&
              read_word(str_sub(word, inner, SIZE_MAX), of, &option))) &&
            (option.value.ptr || take_value(arena, run, at, &option))) {
            *ret_option = option;
            return true;
        }
    }
    return false;
}

bool option_of_set(struct str word, struct option_found *ret_option)
{
    struct option_found o = {.means = MEANS_N};
    if (!shell_assignment(word, &o.spelled, &o.value)) {
        return false;
    }
    const struct option_spelling *row = spelling_of(o.spelled, OF_SET);
    row = row ? row : spelling_of(o.spelled, OF_TRAINING);
    o.means = row && row->means < MEANS_BATCH ? row->means : MEANS_N;
    *ret_option = o;
    return true;
}
