// Package csi has the drivers of the Container Storage Interface on this machine do
// what the volumes of pods need, with the requests of a kubelet.
//
//	driver's pod ─socket─▶ plugins.Watcher ─▶ Drivers.Register ─ NodeGetInfo
//	volume.Dir ─▶ Publish ─ NodeStageVolume, NodePublishVolume, NodeExpandVolume
//	           ─▶ Unpublish ─ NodeUnpublishVolume
//	Run: what no pod uses ─ NodeUnstageVolume; what its driver wants so, or what has
//	     changed ─ NodePublishVolume again, NodeExpandVolume
//
// A volume is staged once, then published for each pod. What was done is on disk,
// in the kubelet's own places and files, before the call that does it:
//
//	<root>/plugins/kubernetes.io/csi/<driver>/<sha256 of handle>/{globalmount,vol_data.json}
//	<root>/pods/<uid>/volumes/kubernetes.io~csi/<volume>/{mount,vol_data.json}
//
// and of block devices
//
//	<root>/plugins/kubernetes.io/csi/volumeDevices/<volume>/data/vol_data.json
//	<root>/plugins/kubernetes.io/csi/volumeDevices/{staging/<volume>,publish/<volume>/<uid>}
//	<root>/pods/<uid>/volumeDevices/kubernetes.io~csi/<volume>   a link to the published one
//
// What was published was staged: facts of that which are lost are made anew. Of a mount
// in a pod without facts nobody knows whose it is, and what may be mounted there is not
// unstaged.
//
// A kubelet finds there what podd staged, and podd what a kubelet did: keys of podd's
// own in these files say what came of the calls, and a kubelet reads over them. What
// a file does not call done is done again, as the protocol allows.
//
// For one volume there is one call at a time. A driver that hangs keeps nobody
// waiting but those who want the same volume, and these no longer than their calls
// may take; nothing here looks into what is mounted.
//
// What a driver did not finish may still go on (see Error.Uncertain): that is
// undone like what was done.
package csi
