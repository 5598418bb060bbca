package cluster

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// NodeUser returns the user and the group as which the agent of a node authenticates.
func NodeUser(node string) (user, group string) {
	return "system:node:" + node, "system:nodes"
}

// WriteKubeconfig writes a kubeconfig for a user with groups.
func (c *Cluster) WriteKubeconfig(file, user string, groups ...string) error {
	config, err := c.Config(user, groups...)
	if err != nil {
		return err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	k.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificate: config.CertFile, ClientKey: config.KeyFile}
	k.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user"}
	k.CurrentContext = "test"
	return clientcmd.WriteToFile(*k, file)
}

// CreateNamespace creates a namespace and its default service account, which pods require. It does
// not change objects that exist.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	_, err = c.Client.CoreV1().ServiceAccounts(name).Create(ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the service account of namespace %s: %w", name, err)
	}
	return nil
}

// CreateBoundVolume creates a volume and a claim and binds them to each other, as the volume
// controller does.
func (c *Cluster) CreateBoundVolume(ctx context.Context, pv *v1.PersistentVolume, pvc *v1.PersistentVolumeClaim) error {
	pvc = pvc.DeepCopy()
	pvc.Spec.VolumeName = pv.Name
	boundClaim, err := c.Client.CoreV1().PersistentVolumeClaims(pvc.Namespace).Create(ctx, pvc, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating claim %s: %w", pvc.Name, err)
	}
	pv = pv.DeepCopy()
	pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: boundClaim.Namespace, Name: boundClaim.Name, UID: boundClaim.UID}
	volume, err := c.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating volume %s: %w", pv.Name, err)
	}
	volume.Status.Phase = v1.VolumeBound
	if _, err := c.Client.CoreV1().PersistentVolumes().UpdateStatus(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("binding volume %s: %w", pv.Name, err)
	}
	boundClaim.Status.Phase, boundClaim.Status.AccessModes, boundClaim.Status.Capacity = v1.ClaimBound, pv.Spec.AccessModes, pv.Spec.Capacity
	if _, err := c.Client.CoreV1().PersistentVolumeClaims(boundClaim.Namespace).UpdateStatus(ctx, boundClaim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("binding claim %s: %w", pvc.Name, err)
	}
	return nil
}
