// Package kubeadm proves that podd, called as the kubelet, is the agent that kubeadm
// sets nodes up with: from nothing to a control plane whose API server, etcd,
// controller manager and scheduler are podd's own static pods, and to a second node
// that joins it. kubeadm, those programs and a kubelet to compare with are of
// testdata/controlplane; their images are made on the spot.
//
//	host ── unshare ──▶ cp-0: kubeadm init, podd, containerd ── static pods: the control plane
//	                       └── unshare ──▶ node-1: kubeadm join, podd, containerd
//
// kubeadm wants the machine for itself: /etc/kubernetes, /var/lib/kubelet, ports.
// So each node is a process of this test in a mount, a network and a UTS namespace
// of its own, where what is written below /etc, /usr and /var goes to a tmpfs. All of
// it ends with the process, however that ends. systemd is not there: what its units
// do the test does, kubeadm's phases one by one.
//
// The tests have the build tag e2e and need root.
package kubeadm
