// Package server is how others see podd, its faces:
//
//	Health    127.0.0.1:10248   /healthz /livez /readyz           anyone local
//	ReadOnly  127.0.0.1:10255   /pods /healthz, stats, the page   anyone local
//	stats     127.0.0.1:4194    /metrics, cAdvisor's; the page    anyone local
//	kubelet   127.0.0.1:10250       the kubelet's, with TLS       whom package auth lets
//	kube      127.0.0.1:10250       Kubernetes', for kubectl      whom package auth lets
//	API       <run-dir>/podd.sock   /v1/… and both of those       root
//	podresources   <root-dir>/pod-resources/kubelet.sock   gRPC   root
//
// Package page is what a browser gets at / of all but Health. No page of another
// origin is answered, by none of them.
//
// It imports nothing of ours: what it shows it reads through the interfaces in
// state.go and meter.go, as immutable values (View), and as an EventLog, which
// package events has. A face is an http.Handler; Server runs one on a listener
// and returns when the last of its handlers has.
//
// Health and ReadOnly have no authentication. They never read a request's body,
// bound everything a client can make them keep, and show no values of
// environment variables and no logs.
//
// What a client can make any face keep is bounded: how many connections there are,
// where strangers make room for each other before those who are known wait, and
// slow readers for others where nobody is known; the
// size of a header and of a body and the time that both take; and how long a
// client may take nothing of its answer.
package server
