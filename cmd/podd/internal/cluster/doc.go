// Package cluster makes podd the node of a Kubernetes cluster. It implements --kubeconfig.
// Only this package and the packages below it connect to an API server. Without --kubeconfig podd does
// not use them.
//
//	kubeconfig ─▶ client ─┬─▶ reflector ── the Node in the API server ────┐
//	                      ├─▶ reflector ── the pods bound to it ─┐        │
//	                      │                                      │        ▼
//	server.Viewer ────────┼────────────── the Node of this host ────▶ nodeSyncer ─▶ create, patch status
//	                      │     ╰──────── the pods of this host ─┴──▶ writer ─────▶ status, mirror pods, deletes
//	server.EventLog ──────┼────────────────────────────────────────▶ eventSender ─▶ events
//	                      ├─▶ leaseRenewer ──▶ renew the Lease
//	                      └─▶ reflector ── the ConfigMap that the Node names ──▶ OnConfigSource
//	              all of these parts ─▶ problemReporter ──▶ log, Problems
//
// Pods from files and URLs run regardless of the state of the cluster, and podd starts without an
// API server. podd uses a client until the kubeconfig has changed and its new content is valid
// (cluster.go). Each goroutine owns its state and sends one request at a time. The timeout of a
// request is apiserver.RequestTimeout or writeTimeout. Package apiserver contains the client and the
// reflectors. A reflector stores immutable snapshots of the objects of the API server in a
// watchable.Value.
//
// Pure functions compute the content of the Node (node.go, condition.go, patch.go). Images,
// pressure and readiness come from the View, and are sent when they change. podd handles the Node
// like the kubelet, with these differences:
//
//   - A host that only has a loopback address, for example before DHCP, is registered
//     without an address. The kubelet does not report a status in this case.
//   - If a Lease has a deleted Node as its owner, podd replaces the owner before the garbage
//     collector deletes the Lease.
//   - podd reads a kubeconfig file when the file appears and when it changes. While the new
//     kubeconfig is invalid, the previous kubeconfig stays in use.
//   - If both the kubeconfig and the certificate directory contain a certificate, podd uses the
//     certificate that was issued later, so that a new kubeconfig always takes effect. A
//     kubeconfig with a token is a valid credential too, and is not overwritten.
//   - The name of a certificate signing request is derived from its key and content, so
//     that a restart does not create another request. A pending request is reported as a
//     problem, and after a rejection the interval between requests grows.
//   - If another client changes the status, podd corrects the status with the next periodic update.
//     If the API server was unreachable, podd corrects the status as soon as the API server is
//     reachable again.
//
// The cost is measured by the benchmark (cmd/podd/bench, parts bound and cluster). Without --kubeconfig podd uses 0.2 MB for
// package initialization in client-go. clientcmd reads the kubeconfig, because clientcmd supports
// the same certificates, tokens, files and exec plugins as the kubelet. clientcmd takes 0.2 MB of
// the 1.5 MB that this package adds to the binary.
//
// The eviction thresholds determine the pressure conditions of the Node (package eviction). The
// thresholds of memory.available and nodefs.available also reduce the allocatable resources. As in
// a kubelet, memory.available refers to the memory of the host, and allocatableMemory.available to
// the memory limit of all pods together.
//
// volumesInUse of the Node's status (in_use.go) names CSI volumes that a controller attaches, and all
// iSCSI and Fibre Channel volumes. It names such a volume as long as a bound pod uses the volume or
// the volume is on this node. podd does not mount the volume before the API server has confirmed a
// status that names the volume. After a start, podd keeps the names in the status until all pods and
// volumes were listed. podd considers a volume attached (objects_attach.go) when volumesAttached names
// it and, for a CSI volume, its VolumeAttachment confirms the attachment. podd reads the
// VolumeAttachment with a GET, because a node may not watch it. podd also reads the Node again, because
// the watch may not have reported the newest version yet. podd considers the volume attached until
// volumesAttached no longer names it. If an attachment takes long, podd reads and reports the error of
// the volume's attacher. The kubelet does not report this error.
//
// podd publishes the CSI drivers of the node (registrar.go) as the kubelet does: in an annotation
// and in topology labels of the Node, and in the CSINode. podd always creates the CSINode at the
// start. The differences are:
//
//   - The registration of a driver does not depend on the API server: the driver is
//     published when the API server is reachable. If the topology of a driver conflicts with
//     the Node's labels, podd reports a problem and publishes the remaining drivers.
//   - If a CSINode has a deleted Node as its owner, podd replaces the owner.
//   - When podd updates allocatable.count, it ignores all other changes in the driver's response,
//     because the API server rejects them. In this case the kubelet does not update the count either.
//
// If a CSIDriver sets nodeAllocatableUpdatePeriodSeconds, podd requests the maximum number of volumes from
// the driver after each period (volume_limit.go). It also does so each time it reads that the attacher
// could not attach a volume because the node has reached a limit. If the error remains for as long as the
// kubelet waits, the pod fails with the reason VolumeAttachmentLimitExceeded. Its controller then creates
// another pod. Each pod waits for this time, even if the attachment has already failed for another pod.
// podd differs from the kubelet in two ways:
//
//   - podd counts the wait from the admission of the pod. The kubelet counts it from the time at which
//     the pod network is ready, unless the pod uses the network of the host. If the network becomes
//     ready later than 2m03s after the admission and the node has still reached the limit, podd fails
//     the pod at once. The kubelet waits for another 2m03s.
//   - podd requests the number at the first error. The kubelet requests it only when it fails the pod.
//
// A bound claim of a CSI volume is read every 90 seconds, because it may have been resized.
// expansion.go updates the status of the claim after the expansion on this node, and reports a
// failed expansion as the kubelet does.
//
// If the Node is deleted while podd runs, podd does not create the Node again, because the deletion
// was intended. The kubelet behaves in the same way. podd uses a Node that another client creates.
// After a restart podd creates the Node itself.
//
// The writer updates the pods in the API server. write_decide.go contains the decision table for a
// pod. Its inputs are the pod in the View and the pod in the API server. The snapshot contains the
// last status in the API server, so that a patch needs no GET, and no request is sent while nothing
// changes. Each pod has at most one request in flight, and at most maxWrites requests are in flight
// together. podd handles pods like the kubelet, with these differences:
//
//   - A mirror pod is created without the fields that the API server rejects. These are references
//     to other objects, priority and overhead. annotationLocalRefs names the omitted references.
//     The API server sets priority and overhead from its own PriorityClasses and RuntimeClasses.
//     The config.hash of the mirror pod is that of the static pod.
//   - The start of a pod does not wait for its mirror pod. A mirror pod with the final status
//     of an earlier run is replaced, because a final status cannot be reverted.
//   - podd patches a status without reading the pod first.
//   - While the host only has a loopback address, podd does not change two kinds of addresses in the
//     API server: the hostIPs of pods, and the podIPs of pods on the host's network. A new pod then
//     has no hostIPs.
//
// With Reviews (review.go, review_cache.go), the cluster authenticates and authorizes the clients
// of the node's API. Reviews implements interfaces of package server/auth and is created before
// there is a connection. Reviews works like the kubelet's webhooks, with these differences: The
// number of cached results is limited. Unknown tokens are cached for ten seconds at most. A flood
// of unknown tokens neither delays other requests nor evicts valid tokens from the cache.
// Concurrent equal requests share one review.
//
// A resolver (objects.go) looks up the objects that pods refer to, with one lookup for each object
// as long as a pod uses the object. A ConfigMap, Secret or RuntimeClass is listed and watched by
// its name, as the node authorizer requires, with the kubelet's watch timeout. An immutable object
// is only listed. ClusterTrustBundles are watched by name or by signer, in version v1 or v1beta1. A
// claim and its volume are read until they are bound. A token is renewed before it expires. A pod
// certificate is requested with a new key, and again after a restart of podd, as in the kubelet,
// because the key is only in memory and in the volume. Its PodCertificateRequest is watched until the
// certificate is issued. All Services and all CSIDrivers are watched. podd keeps only the parts of a
// Service that become environment variables. A PersistentVolume and its driver may need further
// objects: Secrets of other namespaces, tokens and an attachment. They are looked up after the volume
// and the driver were read. During an outage the interval between attempts for a cached
// object grows up to 30 seconds. As in the kubelet, PriorityClasses are not looked up, because the
// API server has written the priority into the pod. The differences from the kubelet are:
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
// With Options.OnConfigSource (config_source.go), podd watches the ConfigMap that the annotation
// podd/config-source of the Node names. In kubelets before 1.24, the field spec.configSource of the Node
// named it. This package only reports the content; the caller validates and applies it. The node
// authorizer does not permit the watch unless a pod of the node uses the ConfigMap, so the cluster needs a
// Role for the node. If the ConfigMap is not available, podd reports the reason. An outage changes nothing.
// podd writes the condition KubeletConfigOk of the View to the Node, and removes it from the Node if the
// View does not contain it.
//
// Source (source.go, bound.go) is the source.Source of the bound pods. It emits the first batch
// after the pods and the Node were listed, because until then podd does not know which pods exist.
// The pods are not cached for the next start. The source emits only changes that affect how a pod
// runs, because the watch also reports podd's own status updates as changes. This package only
// decides which pods are bound; package manifest validates these pods, and package admission admits
// them. As with the kubelet, a pod that is force-deleted gets the grace period in its spec, because
// the API server reports no other grace period. The differences from the kubelet are:
//
//   - If a list does not contain a pod, the pod is deleted only if the list comes from the cluster
//     that has bound the pod. An API server that has lost its data returns an empty list, although
//     no user has deleted the pods. A cluster is identified (origin.go) by the UIDs of the Service
//     default/kubernetes and of the Node. A new cluster creates the Service with another UID. The
//     UID of the Node is needed, too, because a user may have deleted the Service. podd requests
//     both UIDs with every list and stores them in cluster.json in the root directory. If both
//     differ, pods that the list does not contain continue to run, with a Problem that names the
//     remedy. If a kubeconfig has another CA, the user has moved the node to another cluster. Pods
//     that this cluster does not list are then deleted.
//   - A deletion that a watch reports is always applied, because an API server that has lost its
//     data ends its watches. If pods of the first cluster continue to run, the watch of a second
//     cluster may report a deletion, even a forced one. The deleted pod may be a pod that the second
//     cluster has bound to this node, or a pod of the first cluster that the second cluster lists,
//     too. podd applies the deletion in both cases.
//
// Certificates are requested (request.go) at the start if none is stored (bootstrap.go), and
// renewed (renew.go) after 70 to 90 % of their lifetime: the client certificate, and the serving
// certificate of the node's API. They are stored where the kubelet stores its certificates
// (cert_files.go). After a renewal of the client certificate all connections are closed and opened
// again. Requests in flight are then repeated, and no error is reported. The serving certificate is
// read at each handshake.
//
//	bootstrap kubeconfig ─▶ request ─▶ approval, signer ─▶ certificate ─▶ kubeconfig
//	                           ▲                            │
//	                        renewer ◀── 70–90 % ── identity ◀┘ ── client, the node's API
package cluster
