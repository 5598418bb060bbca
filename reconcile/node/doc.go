// Package node determines facts about the host as plain values and follows their changes.
//
//	kernel, resolver ─▶ reading ─▶ choice.next ─▶ Addresses
//	      ▲ netlink events, poll          └─▶ file ─▶ next start
//
// An event only triggers another reading; its payload is not used. If events cannot be
// received, the addresses are read every ten seconds.
//
// An address that was found by a route or by the node's name is stored. After the next start, podd
// uses the stored address until it finds another address in one of these ways, even if the host
// does not have the stored address yet.
package node
