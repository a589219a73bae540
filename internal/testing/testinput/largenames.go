// SPDX-License-Identifier: Apache-2.0

package testinput

// largeStructs are structs of the kernel with members that every kernel since 4.18 has on
// every machine, and members that only some kernels have. Members are written as
// path:shape. The shape is p for a pointer, or the bytes of an integer; 8 also for those
// that have 4 on 32-bit kernels.
var largeStructs = []struct{ name, always, sometimes string }{
	{
		"task_struct",
		"acct_rss_mem1:8 clear_child_tid:p flags:4 memcg_nr_pages_over_high:4 nsproxy:p pid:4 reclaim_state:p sessionid:4 tgid:4 dl.deadline:8 loginuid.val:4 sched_info.pcount:8",
		"__state:4 max_state:4 rcu_tasks_exit_cpu:4",
	},
	{
		"mm_struct",
		"arg_end:8 brk:8 end_code:8 env_start:8 hiwater_rss:8 map_count:4 owner:p start_brk:8 start_stack:8 membarrier_state.counter:4 mm_users.counter:4 tlb_flush_pending.counter:4",
		"core_state:p iommu_mm:p mmu_notifier_mm:p",
	},
	{
		"file",
		"f_cred:p f_flags:4 f_inode:p f_mapping:p f_mode:4 f_op:p f_pos:8 f_security:p f_wb_err:4 f_path.dentry:p f_ra.async_size:4 f_ra.ra_pages:4",
		"f_ep:p f_owner:p f_sb_err:4",
	},
	{
		"dentry",
		"d_flags:4 d_fsdata:p d_inode:p d_op:p d_parent:p d_sb:p d_time:8 d_lockref.count:4 d_name.hash:4 d_name.len:4",
		"waiters:p",
	},
	{
		"inode",
		"__i_nlink:4 i_acl:p i_default_acl:p i_flctx:p i_generation:4 i_mapping:p i_opflags:2 i_rdev:4 i_wb:p i_count.counter:4 i_data.host:p i_dio_count.counter:4",
		"i_atime_nsec:4 i_ctime_nsec:4 i_mtime_sec:8",
	},
	{
		"sock",
		"sk_ack_backlog:4 sk_destruct:p sk_filter:p sk_mark:4 sk_pacing_shift:1 sk_priority:4 sk_route_caps:8 sk_sndtimeo:8 sk_user_data:p __sk_common.skc_addrpair:8 __sk_common.skc_rcv_wnd:4 sk_cgrp_data.prioidx:2",
		"sk_bind_phc:4 sk_protocol:2 sk_tx_queue_mapping_jiffies:8",
	},
	{
		"sk_buff",
		"_nfct:8 csum_start:2 dev:p inner_ipproto:1 inner_transport_header:2 mark:4 priority:4 sender_cpu:4 transport_header:2 rbnode.__rb_parent_color:8 rbnode.rb_left:p rbnode.rb_right:p",
		"_sk_redir:8 alloc_cpu:2 ip_defrag_offset:4",
	},
	{
		"net_device",
		"_rx:p dev_port:2 group:4 ifalias:p mem_end:8 ndisc_ops:p num_tx_queues:4 queues_kset:p sysfs_rx_queue_group:p carrier_down_count.counter:4 dev.parent:p stats.rx_length_errors:8",
		"atalk_ptr:p mangleid_features:8 rtnl_link_initializing:1",
	},
	{
		"cred",
		"group_info:p jit_keyring:1 process_keyring:p request_key_auth:p securebits:4 security:p session_keyring:p thread_keyring:p user:p egid.val:4 fsuid.val:4 suid.val:4",
		"ucounts:p",
	},
	{
		"nsproxy",
		"cgroup_ns:p ipc_ns:p mnt_ns:p net_ns:p pid_ns_for_children:p uts_ns:p",
		"",
	},
	{
		"signal_struct",
		"audit_tty:4 cmaxrss:8 coublock:8 flags:4 inblock:8 min_flt:8 nvcsw:8 oom_score_adj_min:2 sum_sched_runtime:8 ioac.cancelled_write_bytes:8 ioac.syscw:8 real_timer._softexpires:8",
		"autogroup:p group_exec_task:p next_posix_timer_id:4",
	},
	{
		"vm_area_struct",
		"anon_vma:p vm_end:8 vm_file:p vm_flags:8 vm_mm:p vm_ops:p vm_pgoff:8 vm_private_data:p vm_start:8 shared.rb_subtree_last:8 swap_readahead_info.counter:8",
		"__vm_flags:8 numab_state:p vm_lock_seq:4",
	},
	{
		"super_block",
		"dq_op:p s_blocksize:8 s_dio_done_wq:p s_fs_info:p s_max_links:4 s_op:p s_readonly_remount:4 s_stack_depth:4 s_type:p s_active.counter:4 s_dquot.flags:4 s_pins.first:p",
		"__s_d_op:p s_encoding_flags:2 s_mounts:p",
	},
	{
		"net",
		"dev_base_seq:4 dev_index_head:p diag_nlsk:p gen:p ifindex:4 loopback_dev:p proc_net_stat:p rtnl:p uevent_sock:p core.prot_inuse:p ipv4.sysctl_tcp_challenge_ack_limit:4 ipv6.rt6_stats:p",
		"crypto_nlsk:p is_dying:1 nf_frag_frags_hdr:p",
	},
	{
		"files_struct",
		"fdt:p next_fd:4 resize_in_progress:1 count.counter:4 fdtab.fd:p fdtab.max_fds:4",
		"",
	},
	{
		"mount",
		"mnt_devname:p mnt_expiry_mark:4 mnt_fsnotify_marks:p mnt_group_id:4 mnt_id:4 mnt_master:p mnt_mp:p mnt_ns:p mnt_parent:p mnt.mnt_flags:4 mnt.mnt_root:p mnt.mnt_sb:p",
		"mnt_ex_mountpoint:p mnt_next_for_sb:p mnt_t_flags:4",
	},
	{
		"fs_struct",
		"in_exec:4 umask:4 users:4 pwd.dentry:p pwd.mnt:p root.dentry:p",
		"",
	},
	{
		"socket",
		"file:p flags:8 ops:p sk:p type:2",
		"wq:p",
	},
	{
		"request",
		"__data_len:4 bio:p cmd_flags:4 end_io_data:p internal_tag:4 mq_ctx:p part:p rq_flags:4 tag:4 elv.icq:p rb_node.__rb_parent_color:8 special_vec.bv_len:4",
		"alloc_time_ns:8 extra_len:4 rq_disk:p",
	},
	{
		"linux_binprm",
		"argc:4 cred:p exec:8 file:p interp:p interp_flags:4 p:8 per_clear:4 vma:p rlim_stack.rlim_cur:8 rlim_stack.rlim_max:8",
		"argmin:8 executable:p interp_data:4",
	},
	{
		"user_namespace",
		"flags:8 level:4 parent:p sysctls:p ucounts:p gid_map.forward:p ns.inum:4 projid_map.reverse:p",
		"binfmt_misc:p parent_could_setfcap:1 persistent_keyring_register:p",
	},
	{
		"pid_namespace",
		"child_reaper:p level:4 parent:p pid_allocated:4 pid_cachep:p reboot:4 ucounts:p user_ns:p idr.idr_base:4 idr.idr_next:4 ns.inum:4",
		"bacct:p memfd_noexec_scope:4 proc_self:p",
	},
	{
		"module",
		"async_probe_requested:1 crcs:p jump_entries:p notes_attrs:p num_exentries:4 num_trace_bprintk_fmt:4 percpu:p srcversion:p trace_evals:p core_kallsyms.num_symtab:4 core_kallsyms.symtab:p mkobj.kobj_completion:p",
		"btf_base_data:p gpl_syms:p num_ctors:4",
	},
	{
		"bio",
		"bi_blkg:p bi_end_io:p bi_flags:2 bi_ioprio:2 bi_max_vecs:2 bi_next:p bi_pool:p bi_private:p bi_status:1 __bi_cnt.counter:4 __bi_remaining.counter:4 bi_iter.bi_sector:8",
		"__bi_nr_segments:4 bi_disk:p bi_seg_back_size:4",
	},
	{
		"cgroup",
		"dom_cgrp:p flags:8 kn:p max_depth:4 max_descendants:4 nr_dying_descendants:4 nr_populated_domain_children:4 nr_threaded_children:4 old_dom_cgrp:p bpf.inactive:p procs_file.kn:p self.id:4",
		"_root_ancestor:p id:4 rstat_base_cpu:p",
	},
	{
		"css_set",
		"dead:1 dfl_cgrp:p dom_cset:p mg_dst_cgrp:p mg_dst_cset:p mg_src_cgrp:p nr_tasks:4",
		"",
	},
	{
		"request_queue",
		"debugfs_dir:p fq:p last_merge:p mq_ops:p nr_hw_queues:4 queue_depth:4 queuedata:p rq_qos:p sched_debugfs_dir:p limits.alignment_offset:4 limits.max_discard_segments:2 limits.seg_boundary_mask:8",
		"async_depth:4 dma_drain_size:4 poll_stat:p",
	},
	{
		"gendisk",
		"bb:p ev:p first_minor:4 fops:p major:4 minors:4 private_data:p queue:p random:p",
		"async_events:4 last_zone_capacity:4 seq_zones_wlock:p",
	},
	{
		"address_space",
		"a_ops:p flags:8 gfp_mask:4 host:p nrpages:8 wb_err:4 writeback_index:8 i_mmap.rb_leftmost:p i_mmap_writable.counter:4",
		"i_private_data:p nrexceptional:8 private_data:p",
	},
	{
		"tcp_sock",
		"advmss:2 data_segs_in:4 high_seq:4 lsndtime:4 pred_flags:4 rcv_ssthresh:4 rttvar_us:4 snd_cwnd_used:4 tcp_mstamp:8 compressed_ack_timer._softexpires:8 inet_conn.icsk_syn_retries:1 rack.mstamp:8",
		"accecn_opt_tstamp:8 max_packets_seq:4 scaling_ratio:1",
	},
	{
		"kernfs_node",
		"flags:2 hash:4 iattr:p mode:2 name:p ns:p priv:p active.counter:4 attr.size:8 rb.__rb_parent_color:8",
		"__parent:p id:8 parent:p",
	},
	{
		"kiocb",
		"ki_complete:p ki_filp:p ki_flags:4 ki_ioprio:2 ki_pos:8 private:p",
		"dio_complete:p ki_cookie:4 ki_waitq:p",
	},
	{
		"seq_file",
		"buf:p count:8 file:p from:8 index:8 pad_until:8 poll_event:4 private:p read_pos:8",
		"version:8",
	},
	{
		"tty_struct",
		"count:4 dev:p driver:p fasync:p flow_change:4 index:4 link:p port:p write_buf:p ldisc_sem.wait_readers:4 termios.c_oflag:4 termios_locked.c_line:1",
		"magic:4 pgrp:p session:p",
	},
}

// largeEnumerators are enumerators of enum bpf_map_type that every kernel since 4.18 has,
// and others that only some have.
var largeEnumerators = struct{ always, sometimes string }{
	"HASH ARRAY PROG_ARRAY PERF_EVENT_ARRAY PERCPU_HASH PERCPU_ARRAY STACK_TRACE CGROUP_ARRAY LRU_HASH LRU_PERCPU_HASH",
	"QUEUE STACK SK_STORAGE DEVMAP_HASH STRUCT_OPS RINGBUF INODE_STORAGE TASK_STORAGE BLOOM_FILTER USER_RINGBUF CGRP_STORAGE ARENA",
}

// largeTypes are structs that every kernel since 4.18 has, and others that only some
// kernels or none have. largeStructs does not have them.
var largeTypes = struct{ always, sometimes string }{
	"list_head hlist_node callback_head path qstr device work_struct timer_list hrtimer mutex rw_semaphore completion",
	"folio maple_tree bpf_ringbuf bpf_timer mnt_idmap blk_holder_ops sched_ext_entity io_uring_task netfs_inode lru_gen_folio rhlist_heads no_such_struct",
}
