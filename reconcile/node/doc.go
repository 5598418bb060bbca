// Package node reads the facts about the host on which pods depend, and follows their changes. These
// facts are the addresses, the DNS configuration, the capacity, the boot and the signals of node
// pressure. They are plain values.
//
// # Addresses
//
//	kernel, resolver ─▶ reading ─▶ choice.next ─▶ Addresses
//	      ▲ netlink events, poll          └─▶ file ─▶ next start
//
// An event only triggers another reading; its payload is not used. If events cannot be received,
// the addresses are read every ten seconds.
//
// An address that was found by a route or by the node's name is stored. After the next start, podd
// uses the stored address even if the host does not have it yet. It does so until it finds another
// address by a route or by the node's name.
package node
