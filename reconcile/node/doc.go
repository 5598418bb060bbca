// Package node determines facts about the host as plain values and follows their changes.
//
//	kernel, resolver ─▶ reading ─▶ choice.next ─▶ Addresses
//	      ▲ netlink events, poll          └─▶ file ─▶ next start
//
// An event only triggers another reading; its payload is not used. If events cannot be
// received, the addresses are read every ten seconds.
//
// An address that was found by its route or by the node's name is stored. The next start
// uses it until another one is found in this way, even if the host does not have it yet.
package node
