// Package kubeadm tests that kubeadm can set up nodes with podd instead of the kubelet. The first
// node runs the control plane as static pods of podd: API server, etcd, controller manager and
// scheduler. A second node joins the cluster. The module testdata/controlplane contains kubeadm, these
// programs, and a kubelet that the tests compare with podd. The tests build the images.
//
//	host ── unshare ──▶ cp-0: kubeadm init, podd, containerd ── static pods: the control plane
//	                       └── unshare ──▶ node-1: kubeadm join, podd, containerd
//
// kubeadm uses fixed paths and ports of the host, such as /etc/kubernetes and /var/lib/kubelet.
// Therefore each node is a process of this test with separate mount, network and UTS namespaces, in
// which /etc, /usr and /var are overlaid with a tmpfs. The namespaces and the tmpfs are removed
// when the process exits, even if it is killed. The nodes have no systemd. Therefore the test
// itself starts the programs of the systemd units, and runs the phases of kubeadm one by one.
//
// The tests have the build tag e2e and need root.
package kubeadm
