// Package objects looks up the objects of a cluster that pods refer to.
//
// A Resolver (resolver.go) runs one lookup for each object as long as a pod uses the object. A ConfigMap,
// Secret or RuntimeClass is listed and watched by its name, as the node authorizer requires, with the
// kubelet's watch timeout. An immutable object is only listed. ClusterTrustBundles are watched by name or
// by signer, in version v1 or v1beta1. A claim and its volume are read until they are bound, and a bound
// claim of a CSI volume is read every 90 seconds, because it may have been resized. A token is renewed
// before it expires. A pod certificate is requested with a new key, and again after a restart of podd, as
// in the kubelet, because the key is only in memory and in the volume. Its PodCertificateRequest is
// watched until the certificate is issued. All Services and all CSIDrivers are watched. podd keeps only
// the parts of a Service that become environment variables. A PersistentVolume and its driver may need
// further objects: Secrets of other namespaces, tokens and an attachment. They are looked up after the
// volume and the driver were read. During an outage the interval between attempts for a cached object
// grows up to 30 seconds. As in the kubelet, PriorityClasses are not looked up, because the API server has
// written the priority into the pod. The differences from the kubelet are:
//
//   - A RuntimeClass is only watched if a pod names it. The interval between reads of
//     unbound claims grows up to four seconds; the kubelet reads ten times a second.
//   - If a PodCertificateRequest is deleted, podd creates another one within seconds. The kubelet
//     waits ten minutes.
//   - podd reports a problem if a signer has not issued the first certificate after three minutes.
//   - A 403 response in the first second after a pod appeared is not reported, because the
//     authorizer of the API server may not have processed the binding of the pod yet.
//   - Pods of files and URLs get no variables of Services.
//
// podd considers a volume attached (attach.go) when volumesAttached of the Node's status names it and, for
// a CSI volume, its VolumeAttachment confirms the attachment. podd reads the VolumeAttachment with a GET,
// because a node may not watch it. podd also reads the Node again, because the watch may not have reported
// the newest version yet. podd considers the volume attached until volumesAttached no longer names it. If
// an attachment takes long, podd reads and reports the error of the volume's attacher. The kubelet does
// not report this error.
//
// If the attacher reports that the node has reached a limit for as long as the kubelet waits, the pod fails
// with the reason VolumeAttachmentLimitExceeded. Its controller then creates another pod. Each pod waits
// for this time, even if the attachment has already failed for another pod. podd differs from the kubelet
// in two ways:
//
//   - podd counts the wait from the admission of the pod. The kubelet counts it from the time at which
//     the pod network is ready, unless the pod uses the network of the host. If the network becomes
//     ready later than 2m03s after the admission and the node has still reached the limit, podd fails
//     the pod at once. The kubelet waits for another 2m03s.
//   - podd requests the maximum number of volumes from the driver (package volumelimit) at the first
//     error. The kubelet requests it only when it fails the pod.
package objects
