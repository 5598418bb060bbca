// Package csi calls the drivers of the Container Storage Interface on this node for the volumes of
// pods, with the requests of the kubelet.
//
//	driver's pod ─socket─▶ plugins.Watcher ─▶ Drivers.Register ─ NodeGetInfo
//	volume.Dir ─▶ Publish ─ NodeStageVolume, NodePublishVolume, NodeExpandVolume
//	           ─▶ Unpublish ─ NodeUnpublishVolume
//	Run: volumes that no pod uses ─ NodeUnstageVolume; volumes that require republishing
//	     or have changed ─ NodePublishVolume again, NodeExpandVolume
//
// A volume is staged once, and then published for each pod. Before each call, podd writes the data
// of the volume (facts) to disk, in the kubelet's directories and files:
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
// A volume is staged before it is published. Therefore, if the data file of a staged volume is
// lost, podd restores the file from the data file of a published volume. If a mount in a pod
// directory has no data file, its volume is unknown. podd then does not unstage any volume that may
// be mounted there.
//
// A volume with an SELinux label (package selinux) is staged and published with a mount option. The data
// files contain the label. If a pod needs another label, podd stages the volume again, unless the volume is
// published for other pods. Calls before a reboot do not count, because a reboot removes all mounts. If a
// kubelet has published the volume for the pod, the mount keeps its label.
//
// A kubelet can use volumes that podd staged, and podd can use volumes that a kubelet staged. podd
// records the results of calls in additional keys, which a kubelet ignores. podd repeats calls that
// are not recorded as successful. The CSI protocol allows this, because calls are idempotent.
//
// There is one call at a time for a volume. A driver that hangs delays only callers for the same
// volume, and only until the timeout of the call. This package never accesses mounted file systems,
// because the access may hang.
//
// A driver may still process a call that failed (see callError.IsUncertain). podd undoes such a
// call like a successful call.
package csi
