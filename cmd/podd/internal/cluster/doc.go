// Package cluster makes podd the node of a Kubernetes cluster. It is all that
// --kubeconfig adds, and the only package that talks to an API server; without the
// flag nothing of it runs.
//
//	kubeconfig ─▶ client ─┬─▶ follower ── the Node as the cluster has it ─┐
//	                      ├─▶ follower ── the pods bound to it ─┐         │
//	                      │                                     │         ▼
//	server.Viewer ────────┼────────────── the Node as this machine is ─▶ keeper ─▶ create, patch status
//	                      │     ╰──────── what runs here ───────┴──────▶ writer ─▶ status, mirrors, deletes
//	server.EventLog ──────┼────────────────────────────────────────────▶ teller ─▶ events
//	                      └─▶ lessee ──▶ renew the Lease
//	                      all of them ─▶ speaker ──▶ log, Problems
//
// Nothing here touches a pod: what files and URLs want runs on whatever the
// cluster does, and podd starts without one. A client lives as long as its
// kubeconfig is what it was; a changed file, or one that can be read at last, makes
// another (cluster.go). Each goroutine owns its state and makes one request at a
// time, which ends within requestTime, or writeTime. What the cluster has of something is a
// sighting, immutable, which its follower puts into a latest for whoever reads it.
//
// What the node is, is decided in functions from values to values: node.go,
// condition.go, patch.go. What this machine is, its images, pressure and readiness,
// is what the View shows to everybody, and is sent when it is another. They do what
// the kubelet does, but for these:
//
//   - A Lease that names a Node that was deleted gets the new one as its owner,
//     before the garbage collector takes it away.
//   - A kubeconfig is read when it comes, and again when it changes; while nothing can
//     be made of the new one, the last counts.
//   - Where both a kubeconfig and the certificate directory have a certificate, that
//     counts which was made later, so that a new kubeconfig is never in vain. A
//     kubeconfig with a token is an identity, too, and is not written over.
//   - A request for a certificate has a name that its key gives, so that it is made
//     once however often podd starts; users are told of it while it waits, and who is
//     refused asks ever more seldom.
//   - What another changed in the status is put right at the next look; at once
//     only after the cluster was away.
//
// What it costs the benchmark measures (cmd/podd/bench, parts bound and cluster). An
// idle node makes six requests a minute, and five more with 100 pods that have a
// ConfigMap and a Secret each, for which it has 201 watches; the kubelet makes as many.
// A watch takes 32 kB, most of it the stacks of two goroutines. A podd without the flag
// pays 0.2 MB for what client-go makes at start.
// clientcmd reads the kubeconfig, for 0.2 MB of the binary's 1.5: certificates, tokens,
// their files and exec plugins are what the kubelet takes too.
//
// Pressure is by evictionHard, of which memory.available and nodefs.available are kept
// from what is allocatable, too; no pod ends for any of it yet. Memory is that of the
// machine: how near pods together are to their own limit is not looked at.
//
// The volumes of CSI drivers that a controller attaches are volumesInUse of the status
// (in_use.go) for as long as a pod that is bound here wants them or this machine has
// them, and no driver hears of one before the API server has answered that the status
// names it. After a start what the status names stays until all is known that could
// speak for it. A volume is attached (objects_attach.go) when volumesAttached names it,
// too, which the watch of the Node tells and the Node is then asked for, as the watch may
// be behind, and its VolumeAttachment, which a node may only get, says so; it stays so
// until volumesAttached says otherwise. What its attacher complains of is asked for while
// it takes long, which the kubelet leaves to events.
//
// The cluster is told of the drivers that register here (registrar.go) as by the kubelet:
// nodeid annotation and topology labels of the Node, and the CSINode, which is made at
// the start in any case. But:
//
//   - The registration of a driver does not hang on the API server: the cluster is told
//     when it can be, and a driver that it cannot have, for its topology is another than
//     the Node's label says, is a trouble and no other driver's.
//   - A CSINode of a Node that was deleted gets the new one as its owner.
//   - The CSINode does not say, as the kubelet's does, that volumes of Kubernetes' own
//     cloud drivers are migrated to CSI: a pod that has one of those is refused here.
//   - allocatable.count is what the driver said when it registered.
//
// A bound claim of a driver's volume is got again every minute and a half, for it may
// have been told to grow; grow.go tells the claim's status when this machine has done
// its part, and of a growth that failed what the kubelet does.
//
// A Node that is deleted while podd runs stays so, as with the kubelet: whoever
// did that wants it gone. podd takes up the one that somebody makes instead, and
// makes one itself when it is started again.
//
// The writer has the cluster know what runs. write_decide.go is the table of what is
// done about a pod, from what podd shows of it and what the cluster has; what was
// sighted is the record, so that no patch costs a GET, and nothing is asked for while
// nothing is new. Per pod there is one request at a time, of the newest; mostWrites of
// them over all. It does what the kubelet does, but for these:
//
//   - A mirror is made without what an API server refuses in it: references to other
//     objects, which AnnotationLocalRefs names, and priority and overhead, which it
//     fills in from its own classes. Its config.hash stays.
//   - Making one holds no start up, and one that tells of an earlier run of its pod,
//     which the cluster lets nobody take back, is replaced.
//   - Statuses are patched without being asked for first.
//
// Who asks the node's own API, and whether they may, the cluster is asked by Reviews
// (review.go, answers.go), which is what package auth of server wants and is made
// before there is any connection. It does as the kubelet's webhooks, but for these:
// it remembers no more than so many answers, and for ten seconds at most that a token
// is nobody's, a flood of unknown tokens holds up no other request and drives out no
// known one, and whoever asks the same at once is one request.
//
// What pods refer to by name a resolver looks up (objects.go): one lookup for each
// object, for as long as a pod that is to run refers to it. A ConfigMap, Secret or
// RuntimeClass is listed and watched by its name, which is all that the node authorizer
// lets a node do, for as long at a time as the kubelet does; one that is immutable is
// listed only. A claim and its volume are got
// until they are bound. A token is asked for again before it ends. Services are followed
// all together, as far as variables are made of them, and so are CSIDrivers. What a
// PersistentVolume or its driver needs, Secrets of other namespaces, tokens, a
// VolumeAttachment, is looked up once it is known which. In an outage an object that is
// known is tried ever more seldom, up to every 30 seconds. It does as the kubelet, but
// for these:
//
//   - A RuntimeClass is watched where a pod names it, and claims are asked for ever
//     more seldom, up to every four seconds, instead of ten times a second.
//   - A refusal in the first second after a pod came is no trouble: the API server
//     may not have heard yet that it is bound here.
//   - Pods of files and URLs get no variables of Services.
//   - Nobody looks up a PriorityClass, as with the kubelet: the API server wrote its
//     number into the pod.
//
// What the cluster wants to run here comes as a source.Source (source.go, bound.go),
// once the pods and the Node were seen; until then absence means nothing, and nothing
// of the cluster is kept for a podd that comes after. Of what an API server says of a
// pod only what bears on its running is passed on: podd's own words come back to it
// and are no news. Package manifest tells what is served, plan what is admitted, and
// in which words; here is only decided what is bound. As with the kubelet, a pod that
// is deleted with force ends with its own grace, for nobody says another. But:
//
//   - A list without a pod ends it only where it is of the cluster that had the pod.
//     An API server whose memory was lost lists nothing, and that is no wish of
//     anybody's. What tells is the UID of the Service default/kubernetes, which it
//     makes anew then, or that of the Node, should somebody have deleted the Service
//     (origin.go). It is asked for with every list and kept in cluster.json of the root
//     directory. While neither is what it was, pods that the list lacks run on, with a
//     Problem that says how to let them go. A kubeconfig that trusts another authority
//     is of another cluster, and meant: what it does not list ends.
//   - What a watch tells the end of has ended: whoever lost its memory ends watches.
//     So has, with force too, what that other cluster had bound here and has no more:
//     its own pods it may end, and those of the first that it knows.
//   - A watch that ends before the time that was asked for is followed by a list. A
//     kubelet watches on, but an API server that lost its memory meanwhile takes any
//     version to watch from, and says nothing.
//
// Certificates are asked for (request.go) at the start, when there is none (bootstrap.go),
// and renewed (renew.go) when 70 to 90 % of their life are over: the one by which podd
// is known, and the one that its own API shows. They are kept where the kubelet keeps
// them (pair.go). When the first is another, every connection is closed and made
// anew; what was under way goes on over the new ones and nobody is told. The second
// is looked up with each handshake and closes nothing.
//
//	bootstrap kubeconfig ─▶ request ─▶ approval, signer ─▶ pair ─▶ kubeconfig
//	                           ▲                            │
//	                        renewer ◀── 70–90 % ── identity ◀┘ ── client, the node's API
package cluster
