btfgen: objects for x86_64: bashreadline bindsnoop and 90 more
Command exited with non-zero status 3
2e8c8739 0.75 121176kB
