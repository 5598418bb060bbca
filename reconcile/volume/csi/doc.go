// Package csi calls the drivers of the Container Storage Interface on this node for the
// volumes of pods, with the requests of the kubelet.
//
//	driver's pod ─socket─▶ plugins.Watcher ─▶ Drivers.Register ─ NodeGetInfo
//	volume.Dir ─▶ Publish ─ NodeStageVolume, NodePublishVolume, NodeExpandVolume
//	           ─▶ Unpublish ─ NodeUnpublishVolume
//	Run: volumes that no pod uses ─ NodeUnstageVolume; volumes that require republishing
//	     or have changed ─ NodePublishVolume again, NodeExpandVolume
//
// A volume is staged once, and then published for each pod. Before each call, its facts
// are written to disk, in the kubelet's directories and files:
//
//	<root>/plugins/kubernetes.io/csi/<driver>/<sha256 of handle>/{globalmount,vol_data.json}
//	<root>/pods/<uid>/volumes/kubernetes.io~csi/<volume>/{mount,vol_data.json}
//
// and for block devices:
//
//	<root>/plugins/kubernetes.io/csi/volumeDevices/<volume>/data/vol_data.json
//	<root>/plugins/kubernetes.io/csi/volumeDevices/{staging/<volume>,publish/<volume>/<uid>}
//	<root>/pods/<uid>/volumeDevices/kubernetes.io~csi/<volume>   a link to the published device
//
// A published volume was staged, so lost facts of the staging are restored from those of
// the publishing. If a mount in a pod directory has no facts, its volume is unknown, and
// volumes that may be mounted there are not unstaged.
//
// A kubelet can use volumes that podd staged, and podd those that a kubelet staged. podd
// adds keys for the results of calls to these files, which a kubelet ignores. Calls that
// are not recorded as done are repeated, which the protocol allows.
//
// There is one call at a time for a volume. A driver that hangs delays only callers for
// the same volume, and only until the timeout of the call. This package never accesses
// mounted file systems, because these accesses may hang.
//
// A driver may still work on a call that failed (see Error.Uncertain). Such a call is
// undone like one that succeeded.
package csi
