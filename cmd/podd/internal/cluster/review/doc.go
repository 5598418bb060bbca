// Package review authenticates and authorizes the clients of the node's API with reviews of the API
// server.
//
// Reviews implements interfaces of package server/auth and is created before there is a connection. Reviews
// works like the kubelet's webhooks, with these differences: The number of cached results is limited.
// Unknown tokens are cached for ten seconds at most. A flood of unknown tokens neither delays other
// requests nor evicts valid tokens from the cache. Concurrent equal requests share one review.
package review
