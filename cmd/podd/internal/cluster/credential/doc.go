// Package credential creates clients with the credential in the kubeconfig, and requests and renews the
// certificates of the node.
//
// Certificates are requested (signing_request.go) at the start if none is stored (bootstrap.go), and
// renewed (renew.go) after 70 to 90 % of their lifetime: the client certificate, and the serving
// certificate of the node's API. They are stored where the kubelet stores its certificates
// (cert_files.go). After a renewal of the client certificate all connections are closed and opened
// again. Requests in flight are then repeated, and no error is reported. The serving certificate is
// read at each handshake.
//
//	bootstrap kubeconfig ─▶ request ─▶ approval, signer ─▶ certificate ─▶ kubeconfig
//	                           ▲                            │
//	                        Renewer ◀── 70–90 % ── Identity ◀┘ ── client, the node's API
//
// podd handles credentials like the kubelet, with these differences:
//
//   - podd reads a kubeconfig file when the file appears and when it changes. While the new
//     kubeconfig is invalid, the previous kubeconfig stays in use.
//   - If both the kubeconfig and the certificate directory contain a certificate, podd uses the
//     certificate that was issued later, so that a new kubeconfig always takes effect. A
//     kubeconfig with a token is a valid credential too, and is not overwritten.
//   - The name of a certificate signing request is derived from its key and content, so
//     that a restart does not create another request. A pending request is reported as a
//     problem, and after a rejection the interval between requests grows.
//
// clientcmd reads the kubeconfig, because clientcmd supports the same certificates, tokens, files and exec
// plugins as the kubelet. clientcmd takes 0.2 MB of the binary.
package credential
