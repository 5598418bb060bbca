// Package vm runs a virtual machine for tests that need features that the host may not have. Examples
// are systemd as init, pure cgroup v2, swap, huge pages, an NFS server, and power cuts.
//
//	test ──commands──▶ qemu (TCG: no KVM needed) ── virtio port ──▶ shell in the machine
//	     ◀──output────         │ disk: a copy, kept over power cuts
//	                           │ payload: read-only, at /payload
//
// The machine has no network except loopback. It is killed when the process that started it
// exits for any reason. Package stack/tools creates its disk.
package vm
