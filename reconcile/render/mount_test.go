package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
	"podd/runtime"
)

// mountLines returns the mounts of an input, one per line.
func mountLines(t *testing.T, in ContainerInput) []string {
	t.Helper()
	c, err := Container(in)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range c.Mounts {
		line := m.HostPath + " -> " + m.ContainerPath
		if m.Readonly {
			line += " ro"
		}
		if m.RecursiveReadOnly {
			line += " recursive"
		}
		if m.SelinuxRelabel {
			line += " relabel"
		}
		if m.Propagation != 0 {
			line += " " + m.Propagation.String()
		}
		lines = append(lines, line)
	}
	return lines
}

// TestMounts checks the mounts of a container, and which of them are relabeled if
// SELinuxEnabled is set.
func TestMounts(t *testing.T) {
	host, both := v1.MountPropagationHostToContainer, v1.MountPropagationBidirectional
	possible := v1.RecursiveReadOnlyIfPossible
	in := inputOf(v1.Container{
		TerminationMessagePath: "dev/end",
		VolumeMounts: []v1.VolumeMount{
			{Name: "empty", MountPath: "data"},
			{Name: "empty", MountPath: "/sub", SubPath: "a/b", ReadOnly: true, RecursiveReadOnly: &possible},
			{Name: "host", MountPath: "/host", MountPropagation: &host},
			{Name: "host", MountPath: "/both", MountPropagation: &both},
			{Name: "info", MountPath: "/info"},
		},
	})
	in.Pod.Object.Spec.Volumes = []v1.Volume{
		{Name: "empty", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/srv"}}},
		{Name: "info", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}},
	}
	in.Volumes = map[string]string{"empty": "/v/empty", "host": "/srv", "info": "/v/info"}
	in.SubPaths = map[int]string{1: "/v/empty/a/b"}
	in.HostsFile, in.TerminationLog = "/p/etc-hosts", "/p/end"
	want := []string{
		"/v/empty -> /data",
		"/v/empty/a/b -> /sub ro",
		"/srv -> /host PROPAGATION_HOST_TO_CONTAINER",
		"/srv -> /both PROPAGATION_BIDIRECTIONAL",
		"/v/info -> /info ro",
		"/p/etc-hosts -> /etc/hosts",
		"/p/end -> /dev/end",
	}
	if diff := cmp.Diff(want, mountLines(t, in)); diff != "" {
		t.Errorf("mounts (-want +got)\n%s", diff)
	}
	in.Node.SELinuxEnabled, in.Node.Handlers = true, map[string]runtime.Handler{"": {RecursiveReadOnlyMounts: true}}
	want[0] += " relabel" // each volume that podd created is relabeled once
	want[1] += " recursive"
	for _, i := range []int{4, 5, 6} {
		want[i] += " relabel"
	}
	if diff := cmp.Diff(want, mountLines(t, in)); diff != "" {
		t.Errorf("mounts with SELinux (-want +got):\n%s", diff)
	}
}

// TestRelabelOfClaims checks that directories of podd are relabeled, and directories of a
// PersistentVolume are not.
func TestRelabelOfClaims(t *testing.T) {
	claimed := func(name string) v1.VolumeSource {
		return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	in := inputOf(v1.Container{VolumeMounts: []v1.VolumeMount{
		{Name: "kept", MountPath: "/kept"}, {Name: "own", MountPath: "/own"}, {Name: "host", MountPath: "/host"},
	}})
	in.Pod.Object.Spec.Volumes = []v1.Volume{
		{Name: "kept", VolumeSource: claimed("kept")},
		{Name: "own", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}},
		{Name: "host", VolumeSource: claimed("host")},
	}
	in.Volumes = map[string]string{"kept": "/v/kept", "own": "/v/own", "host": "/srv"}
	in.Refs = &refs.Resolved{Claims: map[string]refs.Claim{
		"kept": {}, "host": {Volume: &v1.PersistentVolume{}},
	}}
	in.Node.SELinuxEnabled = true
	want := []string{"/v/kept -> /kept relabel", "/v/own -> /own relabel", "/srv -> /host"}
	if diff := cmp.Diff(want, mountLines(t, in)); diff != "" {
		t.Errorf("mounts (-want +got)\n%s", diff)
	}
}

// TestRelabelOfDisks checks that CSI volumes and iSCSI and Fibre Channel disks are relabeled unless they are
// read-only or their mount does not store labels.
func TestRelabelOfDisks(t *testing.T) {
	for name, c := range map[string]struct {
		source  v1.VolumeSource
		volume  v1.PersistentVolumeSource // of the claim in source
		relabel bool
	}{
		"inline iscsi":           {source: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{}}, relabel: true},
		"inline iscsi read-only": {source: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{ReadOnly: true}}},
		"inline fc":              {source: v1.VolumeSource{FC: &v1.FCVolumeSource{}}, relabel: true},
		"inline fc read-only":    {source: v1.VolumeSource{FC: &v1.FCVolumeSource{ReadOnly: true}}},
		"inline csi":             {source: v1.VolumeSource{CSI: &v1.CSIVolumeSource{}}, relabel: true},
		"inline csi read-only":   {source: v1.VolumeSource{CSI: &v1.CSIVolumeSource{ReadOnly: new(true)}}},
		"inline cinder":          {source: v1.VolumeSource{Cinder: &v1.CinderVolumeSource{}}, relabel: true},
		"inline nfs":             {source: v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}},
		"iscsi":                  {source: claimOf(false), volume: v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{}}, relabel: true},
		"iscsi read-only":        {source: claimOf(false), volume: v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{ReadOnly: true}}},
		"iscsi, claim read-only": {source: claimOf(true), volume: v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{}}},
		"fc":                     {source: claimOf(false), volume: v1.PersistentVolumeSource{FC: &v1.FCVolumeSource{}}, relabel: true},
		"fc read-only":           {source: claimOf(false), volume: v1.PersistentVolumeSource{FC: &v1.FCVolumeSource{ReadOnly: true}}},
		"csi":                    {source: claimOf(false), volume: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{}}, relabel: true},
		"csi, claim read-only":   {source: claimOf(true), volume: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{}}},
		"nfs":                    {source: claimOf(false), volume: v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{}}},
		"hostPath":               {source: claimOf(false), volume: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{}}},
	} {
		in := inputOf(v1.Container{VolumeMounts: []v1.VolumeMount{{Name: "v", MountPath: "/v"}}})
		in.Pod.Object.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: c.source}}
		in.Volumes = map[string]string{"v": "/host/v"}
		in.Refs = &refs.Resolved{Claims: map[string]refs.Claim{
			"claim": {Volume: &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: c.volume}}},
		}}
		for _, host := range []struct{ enabled, relabelable bool }{{false, true}, {true, false}, {true, true}} {
			in.Node.SELinuxEnabled, in.Relabelable = host.enabled, map[string]bool{"v": host.relabelable}
			rendered, err := Container(in)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, want := rendered.Mounts[0].SelinuxRelabel, host.enabled && host.relabelable && c.relabel; got != want {
				t.Errorf("%s, %+v: got relabel %t, want %t", name, host, got, want)
			}
		}
	}
}

func claimOf(readOnly bool) v1.VolumeSource {
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim", ReadOnly: readOnly}}
}

// TestMounts_OwnHosts checks that a mount at /etc/hosts replaces the mount of podd.
func TestMounts_OwnHosts(t *testing.T) {
	in := inputOf(v1.Container{VolumeMounts: []v1.VolumeMount{{Name: "h", MountPath: "/etc/hosts"}}})
	in.Volumes = map[string]string{"h": "/own"}
	in.HostsFile, in.TerminationLog = "/p/etc-hosts", "/p/end" // without a path there is no termination log
	if diff := cmp.Diff([]string{"/own -> /etc/hosts"}, mountLines(t, in)); diff != "" {
		t.Errorf("mounts (-want +got)\n%s", diff)
	}
}

// TestMounts_Errors checks that Container and CheckMounts return the same errors for invalid mounts.
func TestMounts_Errors(t *testing.T) {
	strange, must := v1.MountPropagationMode("Sideways"), v1.RecursiveReadOnlyEnabled
	for name, m := range map[string]v1.VolumeMount{
		"unknown volume":                        {Name: "ghost", MountPath: "/x"},
		"subPath not opened":                    {Name: "v", MountPath: "/x", SubPath: "a"},
		"subPathExpr not opened":                {Name: "v", MountPath: "/x", SubPathExpr: "$(A)"},
		"unknown propagation":                   {Name: "v", MountPath: "/x", MountPropagation: &strange},
		"recursively read-only without support": {Name: "v", MountPath: "/x", ReadOnly: true, RecursiveReadOnly: &must},
	} {
		in := inputOf(v1.Container{VolumeMounts: []v1.VolumeMount{m}})
		in.Volumes = map[string]string{"v": "/v"}
		_, err := Container(in)
		if m.RecursiveReadOnly != nil {
			if refused := CheckMounts(in.Pod, in.Node); refused == nil || refused.Error() != err.Error() {
				t.Errorf("got error %v from Container and %v from CheckMounts, want equal errors", err, refused)
			}
		}
		if err == nil || !strings.Contains(err.Error(), `"main"`) || !strings.Contains(err.Error(), m.Name) {
			t.Errorf("%s: got error %v, want one that names the mount and the container", name, err)
		}
	}
}
