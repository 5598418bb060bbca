// Package intree translates the cloud volumes of Kubernetes (the in-tree volumes) into volumes of the
// CSI drivers that have replaced their implementations:
//
//	awsElasticBlockStore  ebs.csi.aws.com
//	azureDisk             disk.csi.azure.com
//	azureFile             file.csi.azure.com
//	cinder                cinder.csi.openstack.org
//	gcePersistentDisk     pd.csi.storage.gke.io
//	portworxVolume        pxd.portworx.com
//	vsphereVolume         csi.vsphere.vmware.com
//
// The result must be equal to that of the controllers of the cluster, because they attach the volume
// under the translated name. Therefore the package uses the library of Kubernetes. The functions are
// pure.
package intree

import (
	"crypto/sha256"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"
)

// Plugins returns the names of the in-tree plugins whose volumes are translated, sorted.
func Plugins() []string {
	return []string{
		plugins.AWSEBSInTreePluginName, plugins.AzureDiskInTreePluginName, plugins.AzureFileInTreePluginName, plugins.CinderInTreePluginName,
		plugins.GCEPDInTreePluginName, plugins.PortworxVolumePluginName, plugins.VSphereInTreePluginName,
	}
}

// TranslateVolume returns a PersistentVolume with the source csi in place of the in-tree source of
// pv. It returns pv itself if pv has no in-tree source of a cloud. It does not modify pv.
func TranslateVolume(pv *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	t := csitranslation.New()
	if !t.IsPVMigratable(pv) {
		return pv, nil
	}
	translated, err := t.TranslateInTreePVToCSI(klog.Logger{}, pv)
	if err != nil {
		return nil, fmt.Errorf("translating PersistentVolume %q to a volume of a CSI driver: %w", pv.Name, err)
	}
	return translated, nil
}

// IsInline reports whether a volume of a pod has an in-tree source of a cloud.
func IsInline(v *v1.Volume) bool { return csitranslation.New().IsInlineMigratable(v) }

// TranslateInline returns a PersistentVolume with the source csi in place of the in-tree source of v,
// for which IsInline must be true. namespace is the namespace of the pod. The PersistentVolume has the
// name that the kubelet uses, or a hash of this name if it cannot be the name of a directory.
func TranslateInline(v *v1.Volume, namespace string) (*v1.PersistentVolume, error) {
	pv, err := csitranslation.New().TranslateInTreeInlineVolumeToCSI(klog.Logger{}, v, namespace)
	if err != nil {
		return nil, fmt.Errorf("translating volume %q to a volume of a CSI driver: %w", v.Name, err)
	}
	if len(validation.IsDNS1123Subdomain(pv.Name)) > 0 {
		pv.Name = fmt.Sprintf("%s-%x", strings.ToLower(pv.Spec.CSI.Driver), sha256.Sum256([]byte(pv.Name)))
	}
	return pv, nil
}
