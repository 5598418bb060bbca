// Package device allocates the devices of device plugins to pods. Pods request them as extended
// resources in resources.limits.
//
//	plugin.Server ── Register, SetDevices, Unregister ─▶ Manager ◀─ Acquire ── effects
//	plugin.Server ◀──── Preferred, Allocate, PreStart ── Manager ◀─ SetHolders, Counts ── router
//
// The router admits pods by the number of devices in Counts. The Manager chooses the devices of a
// pod for all of its containers before its sandbox is created. The pod keeps them until it no
// longer exists, so that a restarted container has the same devices.
//
// Allocations are written to a file before they are used, and to the annotation
// runtime.AnnotationDevices of the containers. If the file is lost or unreadable, podd calls
// Allocate again for the devices in the annotation. A file is unreadable if it is damaged, or if a
// newer podd wrote it. The file has a version and a checksum, so that podd detects both cases. Before
// podd writes a new file, it renames an unreadable one, so that nothing is lost.
//
// A resource that no plugin serves any more is reported as by a kubelet: its devices count as capacity
// for 5 minutes, but are not allocatable. Then the capacity is 0. The file also contains the names of
// the resources. After a restart of podd, such a resource is therefore reported with the capacity 0
// until a plugin registers, instead of being omitted. The Manager forgets the resource when the
// capacity has been 0 for 5 minutes. Running containers keep their devices.
//
// Several plugins of one resource may be registered, because a plugin may be updated without downtime.
// The newest plugin that has listed devices is used.
//
// The state of a Manager is guarded by a mutex instead of being owned by a goroutine, because the
// router's calls of SetHolders must take effect at once. The Manager neither calls plugins nor
// accesses the disk while the mutex is locked. A plugin that does not respond delays only pods that
// request its devices, and only until the timeout of the call.
package device
