// Package oldest is empty. Its module pins the oldest control plane with which podd is tested as a
// node:
//
//	make conformance PLANE=oldest
package oldest
