#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Eight tasks make a part of an archive each, in a directory that all nodes share. Then a job merges the parts:
#   sbatch --dependency=afterok:$(sbatch --parsable slurm.sh) --wrap 'btfgen archive convert parts/*.btfa -o tracer.btfa'
# To repeat a task, submit the whole array: with --array=3 it would be the only one, and make all kernels.
#SBATCH --job-name=btf --array=1-8
mkdir -p parts
btfgen generate --shard auto -j "${SLURM_CPUS_PER_TASK:-1}" --btf kernels/ -o "parts/$SLURM_ARRAY_TASK_ID.btfa" tracer.bpf.o
