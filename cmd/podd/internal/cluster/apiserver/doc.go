// Package apiserver sends requests to an API server, lists and watches its objects, and identifies its
// cluster.
//
// A Client sends the requests. It gives up after RequestTimeout, and sends a request again if a renewal of
// podd's certificate has closed the connection. The objects of the API server are immutable snapshots,
// which a Reflector lists, watches and stores.
//
// An idle node sends six requests a minute. With 100 pods that have a ConfigMap and a Secret each, the
// node has 201 watches and sends five more requests a minute, as many as the kubelet. A watch takes
// 32 kB of memory, most of it for the stacks of two goroutines.
//
// A watch that ends before the requested time is followed by a list. The kubelet continues to watch, but
// an API server that has lost its data accepts any resource version and does not report the loss.
package apiserver
