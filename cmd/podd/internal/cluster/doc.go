// Package cluster makes podd the node of a Kubernetes cluster. It implements --kubeconfig.
// Only this package and the packages below it connect to an API server. Without --kubeconfig podd does
// not use them.
//
// These parts run concurrently. Each connection has its own, except boundpods, which runs across all
// connections. The stored Node and pods are those in the API server, which two Reflectors list and watch.
// The View contains the Node and the pods of this host.
//
//	part           input                                    output
//	credential     the kubeconfig                         ▶ the client, the certificates of podd
//	nodesync       the stored Node, the View              ▶ the Node and its status
//	lease          the UID of the Node                    ▶ the Lease
//	podwriter      the stored Node and pods, the View     ▶ the status of pods, mirror pods, deletions
//	objects        the stored Node and pods               ▶ the objects that the pods refer to
//	boundpods      the stored Node and pods, the objects  ▶ the desired pods
//	eventsender    server.EventLog, the UID of the Node   ▶ the events
//	csinode        the stored Node, the CSI drivers       ▶ the CSINode, labels and an annotation of the Node
//	volumelimit    the CSIDrivers, failed attachments     ▶ new limits of drivers, which csinode publishes
//	expansion      the expansions of volumes, the objects ▶ the status of PersistentVolumeClaims
//	configsource   the ConfigMap that the Node names      ▶ Options.OnConfigSource
//
// The Reflectors, credential, nodesync, lease, objects, csinode and configsource report each result to the
// problemReporter, which logs the most important problem and calls Options.OnProblem.
//
// The packages below this one:
//
//	apiserver    the client, watches and reflectors, and the identity of a cluster
//	credential   the kubeconfig, and the certificates that podd requests and renews
//	nodesync     the Node and its status
//	lease        the Lease, which is the heartbeat of the node
//	csinode      the CSI drivers of the node in the CSINode and the Node
//	inuse        the volumes that must not be detached
//	volumelimit  the maximum number of volumes of CSI drivers
//	expansion    the status of PersistentVolumeClaims after an expansion
//	objects      the objects that pods refer to
//	podcert      the keys of pod certificates, and the status of PodCertificateRequests
//	podwriter    the status of pods, mirror pods and the completion of deletions
//	mirror       the content of mirror pods
//	eventsender  the events
//	boundpods    the source of the pods bound to the node
//	configsource the ConfigMap that an annotation of the Node names
//	review       reviews of the clients of the node's API
//	backoff      the waits between the attempts of a request
//	watchable    values that notify their readers of changes
//	mergepatch   JSON merge patches
//	clustertest  an API server, objects and responses for tests
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
