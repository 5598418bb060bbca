// Package server implements podd's HTTP, gRPC and Unix-socket endpoints:
//
//	part             address                                content                          clients
//	Health           127.0.0.1:10248                        /healthz, /livez and /readyz     any local client
//	ReadOnlyHandler  127.0.0.1:10255                        /pods, paths of Health, stats    any local client
//	cadvisor         127.0.0.1:4194                         metrics and API of cAdvisor      any local client
//	kubelet          127.0.0.1:10250                        the kubelet's API, with TLS      as package auth decides
//	kube             127.0.0.1:10250                        the Kubernetes API, for kubectl  as package auth decides
//	API              <run-dir>/podd.sock                    /v1/… and the previous two       root
//	podresources     <root-dir>/pod-resources/kubelet.sock  gRPC                             root
//	podsapi          <root-dir>/pods-api/pods-api.sock      gRPC                             root
//
// Every HTTP endpoint except Health serves the status page (package page) at / to browsers. No
// endpoint serves requests from pages of another origin. If a browser reaches podd's socket through
// port forwarding, podd gives it no credential, and accepts only host names that no other site can
// resolve to this host.
//
// The package imports no other package of podd except order, redact and request. It reads the data that it
// serves through the interfaces in state.go and meter.go and through EventLog, which package events
// implements. Pods and sources are published as immutable values (View). An endpoint is an
// http.Handler. A Server runs an endpoint on a listener and returns when all handlers have
// returned.
//
// Health, ReadOnlyHandler and the cAdvisor port do not authenticate clients. They never read a
// request's body. Their responses contain no logs, no events of Kubernetes and no private fields of a
// pod (package redact). The cAdvisor port also serves the names of processes, but not their arguments.
//
// Every endpoint limits the resources that a client can use: the number of connections, the size of
// a header and of a body, the time to send them, and the time for which a client may interrupt
// reading a response. When the limit of connections is reached, a connection of an unauthenticated
// client is closed before an authenticated client has to wait. An endpoint that does not
// authenticate clients closes connections of slow readers.
package server
