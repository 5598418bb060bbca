// Package cluster makes podd the node of a Kubernetes cluster. It implements --kubeconfig.
// Only this package and the packages below it connect to an API server. Without --kubeconfig podd does
// not use them.
//
//	credential ─▶ apiserver.Client ─┬─▶ Reflector ── the Node in the API server ───┐
//	                                ├─▶ Reflector ── the pods bound to it ─┬─▶ boundpods, objects
//	                                │                                      │       ▼
//	server.Viewer ──────────────────┼───────── the Node of this host ──────┼──▶ nodesync ──▶ create, patch status
//	                                │    ╰──── the pods of this host ──────┴──▶ podwriter ─▶ status, mirror pods, deletes
//	server.EventLog ────────────────┼─────────────────────────────────────────▶ eventsender ▶ events
//	                                ├─▶ lease ──▶ renew the Lease
//	                                ├─▶ csinode, volumelimit, expansion ──▶ CSINode, labels of the Node, status of claims
//	                                └─▶ configsource ──▶ OnConfigSource
//	                        all of these parts ─▶ problemReporter ──▶ log, Problems
//
// The packages below this one are the parts of a connection:
//
//	apiserver    the client, watches and reflectors, and the identity of a cluster
//	credential   the kubeconfig, and the certificates that podd requests and renews
//	nodesync     the Node and its status
//	lease        the Lease, which is the heartbeat of the node
//	csinode      the CSI drivers of the node in the CSINode and the Node
//	inuse        the volumes that must not be detached
//	volumelimit  the maximum number of volumes of CSI drivers
//	expansion    the status of PersistentVolumeClaims after an expansion
//	objects      the objects that pods refer to, and podcert with their certificates
//	podwriter    the status of pods, mirror pods and the completion of deletions
//	mirror       the content of mirror pods
//	eventsender  the events
//	boundpods    the source of the pods bound to the node
//	configsource the ConfigMap that an annotation of the Node names
//	review       reviews of the clients of the node's API
//	iptables     the kubelet's iptables chains
//	backoff, watchable, mergepatch   waits, values with notifications, patches
//
// This package connects the parts (cluster.go) and reports their problems (problem.go,
// problem_reporter.go).
//
// Pods from files and URLs run regardless of the state of the cluster, and podd starts without an
// API server. podd uses a client until the kubeconfig has changed and its new content is valid
// (cluster.go). Each goroutine owns its state and sends one request at a time. The timeout of a
// request is apiserver.RequestTimeout or apiserver.WriteTimeout.
//
// The cost is measured by the benchmark (cmd/podd/bench, parts bound and cluster). Without --kubeconfig
// podd uses 0.2 MB for package initialization in client-go. All these packages add 1.5 MB to the binary.
package cluster
