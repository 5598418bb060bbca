// Package vm runs a virtual machine for what the machine of the tests may lack:
// systemd as init, cgroup v2 alone, swap, huge pages, an NFS server, and a power
// cut.
//
//	test ──commands──▶ qemu (TCG: no KVM needed) ── virtio port ──▶ shell in the machine
//	     ◀──output────         │ disk: a copy, kept over cuts of the power
//	                           │ payload: read-only, at /payload
//
// The machine has no network but its own loopback. It ends with the process that
// started it, however that ends. Its disk is made by package stack/tools.
package vm
