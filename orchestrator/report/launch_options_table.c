/* SPDX-License-Identifier: Apache-2.0 */
/* Spellings of options. Sources, read 2026-11: mpirun(1) of Open MPI 4.1 and MPICH 4; `horovodrun --help` 0.28; torch.distributed.run
   2.3 and torch.distributed.launch 1.6; paddle.distributed.launch 1.8 to 2.6; deepspeed 0.14; accelerate 0.30; srun(1) 23.02; training
   programs of PaddleSeg, PaddleClas, PaddleNLP, NVIDIA DeepLearningExamples, mmsegmentation, Hugging Face transformers, timm,
   torchvision references, Megatron-LM, fairseq, Lightning, MXNet gluon-cv and TensorFlow models. */
#include "base/base.h"

#include "report/launch_options.h"

#define OF_LAUNCHERS (OF_TORCH | OF_PADDLE | OF_DEEPSPEED | OF_ACCELERATE)

const struct launcher_name LAUNCHER_NAMES[] = {
    {"mpirun", OF_MPI},
    {"mpiexec", OF_MPI},
    {"mpiexec.hydra", OF_MPI},
    {"mpirun.openmpi", OF_MPI},
    {"orterun", OF_MPI},
    {"prterun", OF_MPI},
    {"horovodrun", OF_HOROVOD},
    {"torchrun", OF_TORCH},
    {"torch.distributed.launch", OF_TORCH},
    {"torch.distributed.run", OF_TORCH},
    {"torch.distributed.elastic.launch", OF_TORCH},
    {"oneflow.distributed.launch", OF_TORCH},
    {"multiproc.py", OF_TORCH},
    {"launch.py", OF_TORCH},
    {"colossalai", OF_TORCH},
    {"composer", OF_TORCH},
    {"paddle.distributed.launch", OF_PADDLE},
    {"paddle.distributed.fleet.launch", OF_PADDLE},
    {"fleetrun", OF_PADDLE},
    {"deepspeed", OF_DEEPSPEED},
    {"accelerate", OF_ACCELERATE},
    {"accelerate.commands.launch", OF_ACCELERATE},
    {"srun", OF_SLURM},
    {"nsys", 0}, /* profilers, whose options are none of these */
    {"nvprof", 0},
};
const size_t N_LAUNCHER_NAMES = ARRAY_LEN(LAUNCHER_NAMES);

const char OTHER_PROGRAMS[] =
    "pip pip3 conda make cmake ninja apt apt-get yum git wget curl tar unzip nvidia-smi xargs "
    "parallel seq head tail sort echo printf awk sed grep ssh scp cd mkdir export cat tee rsync "
    "ncu test [ [[ sleep for while until done";

const struct option_spelling OPTION_SPELLINGS[] = {
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
const size_t N_OPTION_SPELLINGS = ARRAY_LEN(OPTION_SPELLINGS);
