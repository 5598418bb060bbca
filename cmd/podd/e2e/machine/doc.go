// Package machine proves podd on a whole machine that is its own: systemd is
// init and holds the cgroups, containerd and podd are its services, and the
// power may be cut between two tests. It has what other machines may lack:
// limits on swap, huge pages to reserve, a kernel that serves NFS, a disk for XFS, a
// clock that may be set.
//
//	boot ─▶ TestService, TestSlices, TestSwap, TestHugePages, TestNFS, TestStart ─▶ power cut ─▶ boot ─▶ TestAfterCut …
//
// The tests have the build tag vm: make vm runs them, in this order, in a
// virtual machine that it makes (package runtimetest/vm). They change the
// machine for good and must not run on one that is used for anything else.
package machine
