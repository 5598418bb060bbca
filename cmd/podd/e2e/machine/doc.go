// Package machine tests podd in a virtual machine. systemd is init and manages the cgroups,
// containerd and podd are its services, and the power is cut between tests. The virtual machine
// provides what other hosts may lack: swap, huge pages, a kernel with an NFS server, a disk for
// XFS, and a clock that tests may set.
//
//	boot ─▶ TestService, TestSlices, TestSwap, TestMemoryQoS, …, TestStart ─▶ power cut ─▶ boot ─▶ TestAfterCut …
//
// TestPackage runs on a disk of its own: it installs podd and containerd with apt, and the other tests
// install them without packages.
//
// The tests have the build tag e2e. make vm creates the virtual machine (package runtimetest/vm)
// and runs them in it, in this order. They change the system permanently and must not run on a
// host that is used for anything else.
package machine
