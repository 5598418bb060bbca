package intree_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/manifest/intree"
)

// TestTranslateVolume checks the driver and the handle of PersistentVolumes with an in-tree source.
func TestTranslateVolume(t *testing.T) {
	const azureURI = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d"
	for _, test := range []struct {
		source               v1.PersistentVolumeSource
		wantDriver, wantName string
	}{
		{v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1"}}, "ebs.csi.aws.com", "vol-1"},
		{v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "d"}}, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"},
		{v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: azureURI, Kind: new(v1.AzureManagedDisk)}}, "disk.csi.azure.com", azureURI},
		{v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{SecretName: "azure-storage-account-a-secret", ShareName: "share"}}, "file.csi.azure.com", "#a#share#pv#default"},
		{v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "c"}}, "cinder.csi.openstack.org", "c"},
		{v1.PersistentVolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "[ds] a.vmdk"}}, "csi.vsphere.vmware.com", "[ds] a.vmdk"},
		{v1.PersistentVolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "p"}}, "pxd.portworx.com", "p"},
	} {
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
		pv.Spec.PersistentVolumeSource, pv.Spec.ClaimRef = test.source, &v1.ObjectReference{Namespace: "default", Name: "c"}
		got, err := intree.TranslateVolume(pv)
		if err != nil || got.Spec.CSI == nil {
			t.Errorf("%s: got %v, error %v; want a volume of this driver", test.wantDriver, got, err)
			continue
		}
		if c := got.Spec.CSI; c.Driver != test.wantDriver || c.VolumeHandle != test.wantName || got.Name != "pv" || got.Spec.ClaimRef == nil {
			t.Errorf("got driver %s, handle %s in PersistentVolume %s; want driver %s, handle %s in PersistentVolume pv", c.Driver, c.VolumeHandle, got.Name, test.wantDriver, test.wantName)
		}
		if pv.Spec.CSI != nil {
			t.Errorf("%s: the argument was modified", test.wantDriver)
		}
	}
}

func TestTranslateVolume_Errors(t *testing.T) {
	pv := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/a"}}}}
	if got, err := intree.TranslateVolume(pv); got != pv || err != nil {
		t.Errorf("hostPath: got %v, error %v; want the unchanged argument", got, err)
	}
	pv.Name, pv.Spec.PersistentVolumeSource = "disk", v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{Kind: new(v1.AzureDedicatedBlobDisk)}}
	if _, err := intree.TranslateVolume(pv); err == nil || !strings.Contains(err.Error(), `translating PersistentVolume "disk"`) {
		t.Errorf("azureDisk that is not managed: got error %v, want one that names the PersistentVolume", err)
	}
	inline := &v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://a/../b"}}}
	if _, err := intree.TranslateInline(inline, "default"); err == nil || !strings.Contains(err.Error(), `translating volume "disk"`) {
		t.Errorf("invalid volumeID: got error %v, want one that names the volume", err)
	}
}

// TestTranslateInline checks that the names of translated volumes are valid names of directories.
func TestTranslateInline(t *testing.T) {
	names := map[string]bool{}
	for _, source := range []v1.VolumeSource{
		{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1", ReadOnly: true}},
		{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "../../../etc"}},
		{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "/../a"}},
		{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "/../b"}},
		{AzureFile: &v1.AzureFileVolumeSource{SecretName: "s", ShareName: "../share"}},
		{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "d"}},
	} {
		v := &v1.Volume{Name: "data", VolumeSource: source}
		if !intree.IsInline(v) {
			t.Fatalf("%+v: got no in-tree volume, want one", source)
		}
		pv, err := intree.TranslateInline(v, "shop")
		if err != nil || len(validation.IsDNS1123Subdomain(pv.Name)) > 0 || !manifest.IsSafeDriverName(pv.Spec.CSI.Driver) || names[pv.Name] {
			t.Errorf("%+v: got %+v, error %v; want a volume with a unique valid name", source, pv, err)
			continue
		}
		names[pv.Name] = true
	}
	if !names["ebs.csi.aws.com-vol-1"] {
		t.Errorf("got names %v, want the name that the kubelet uses, ebs.csi.aws.com-vol-1, among them", names)
	}
	if intree.IsInline(&v1.Volume{VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "d"}}}) {
		t.Error("volume of type csi: got an in-tree volume, want none")
	}
}

func TestPlugins(t *testing.T) {
	if all := intree.Plugins(); len(all) != 7 || !slices.IsSorted(all) {
		t.Errorf("Plugins: got %v, want seven sorted names", all)
	}
}
