// Package kubeadm tests that kubeadm can set up nodes with podd in the place of the kubelet:
// a control plane with API server, etcd, controller manager and scheduler as podd's static
// pods, and a second node that joins it. testdata/controlplane contains kubeadm, these
// programs and a kubelet to compare with. The tests build the images.
//
//	host ── unshare ──▶ cp-0: kubeadm init, podd, containerd ── static pods: the control plane
//	                       └── unshare ──▶ node-1: kubeadm join, podd, containerd
//
// kubeadm uses fixed paths and ports of the host, such as /etc/kubernetes and
// /var/lib/kubelet. So each node is a process of this test with separate mount, network and
// UTS namespaces, in which /etc, /usr and /var are on a tmpfs. Everything ends with the
// process, even if it is killed. There is no systemd: the test does the work of its units
// and runs kubeadm's phases one by one.
//
// The tests have the build tag e2e and need root.
package kubeadm
