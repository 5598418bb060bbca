package decode_test

import (
	"strings"
	"testing"

	"podd/manifest/decode"
	"podd/manifest/manifesttest"
)

const small = manifesttest.SmallCapacity

var claimText, volumeText = manifesttest.Claim, manifesttest.Volume

// TestFile_InvalidVolumes checks the fields that the Problems of invalid claims and volumes
// name.
func TestFile_InvalidVolumes(t *testing.T) {
	for text, want := range map[string]string{
		claimText("a", ", dataSource: {kind: PersistentVolumeClaim, name: b}"):                    "spec.dataSource",
		claimText("a", ", volumeMode: Tape"):                                                      "spec.volumeMode",
		strings.Replace(claimText("a", ""), "[ReadWriteOnce]", "[]", 1):                           "spec.accessModes",
		strings.Replace(claimText("a", ""), "[ReadWriteOnce]", "[ReadWriteOnce, Often]", 1):       "spec.accessModes[1]",
		strings.Replace(claimText("a", ""), "ReadWriteOnce", "ReadWriteOncePod, ReadOnlyMany", 1): "spec.accessModes",
		strings.Replace(claimText("a", ""), "1Gi", "0", 1):                                        "spec.resources.requests[storage]",
		volumeText("x", ""): "spec.capacity[storage]",
		strings.Replace(volumeText("x", small), "/srv", "srv", 1):                                                                                                                               "spec.hostPath.path",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "local: {path: /a/../b}", 1):                                                                                          "spec.local.path",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "iscsi: {targetPortal: d, iqn: i, lun: 0}", 1):                                                                        "spec.iscsi.iqn",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "iscsi: {targetPortal: d, iqn: 'iqn.2001-04.com.example:a', lun: 0, chapAuthSession: true, secretRef: {name: A}}", 1): "spec.iscsi.secretRef.name",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "iscsi: {targetPortal: d, iqn: 'iqn.2001-04.com.example:a', lun: 0}, mountOptions: [loop]", 1):                        "spec.mountOptions[0]",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "fc: {wwids: [a/b]}, volumeMode: Block", 1):                                                                           "spec.fc.wwids[0]",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}, ", "", 1):                                                                                                              "spec",
		volumeText("x", small+", local: {path: /a}"):                                                                                                                                            "spec.local",
		volumeText("x", small+", nfs: {server: s, path: /a}"):                                                                                                                                   "spec.nfs",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: a}", 1):                                                                                       "spec.nfs.path",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: /a}, mountOptions: [soft, 'ro,bg']", 1):                                                       "spec.mountOptions[1]",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: /a}, mountOptions: [soft, 'ro, bg =1']", 1):                                                   "spec.mountOptions[1]",
		strings.Replace(volumeText("x", small), "hostPath: {path: /srv}", "nfs: {server: s, path: /a}, mountOptions: ['']", 1):                                                                  "spec.mountOptions[0]",
		volumeText("x", small+", mountOptions: [noexec]"):                                                                                                                                       "spec.mountOptions",
		volumeText("x", small+", volumeAttributesClassName: gold"):                                                                                                                              "spec.volumeAttributesClassName",
		volumeText("x", small+", persistentVolumeReclaimPolicy: Keep"):                                                                                                                          "spec.persistentVolumeReclaimPolicy",
		claimText("a", ", volumeAttributesClassName: gold"):                                                                                                                                     "spec.volumeAttributesClassName",
		strings.Replace(volumeText("x", small), "metadata: {", "metadata: {namespace: a, ", 1):                                                                                                  "metadata.namespace",
		volumeText("x", small+", volumeMode: Block"):                                                                                                                                            "spec.volumeMode",
		volumeText("x", small+", nodeAffinity: {}"):                                                                                                                                             "spec.nodeAffinity.required",
		volumeText("x", small+", nodeAffinity: {required: {nodeSelectorTerms: []}}"):                                                                                                            "spec.nodeAffinity.required.nodeSelectorTerms",
		volumeText("x", small+", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In}]}]}}"):                                                             "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values",
	} {
		f := decode.File([]byte(text), decode.Options{})
		if len(f.Problems) != 1 || f.Problems[0].FieldPath != want || !f.HasRefusedDocument() {
			t.Errorf("%s\ngot problems %v, want one about the field %q", text, f.Problems, want)
		}
	}
}

// TestFile_VolumeWarnings checks the warnings about fields of a volume that have no effect.
func TestFile_VolumeWarnings(t *testing.T) {
	for more, want := range map[string]string{
		", persistentVolumeReclaimPolicy: Retain":                                                             "",
		", persistentVolumeReclaimPolicy: Delete":                                                             "spec.persistentVolumeReclaimPolicy",
		", persistentVolumeReclaimPolicy: Recycle":                                                            "spec.persistentVolumeReclaimPolicy",
		", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}": "",
	} {
		f := decode.File([]byte(volumeText("x", small+more)), decode.Options{})
		got := ""
		for _, p := range f.Problems {
			got += p.FieldPath
		}
		if got != want || f.HasRefusedDocument() {
			t.Errorf("%s: got problems %v, want one warning about the field %q", more, f.Problems, want)
		}
	}
}
