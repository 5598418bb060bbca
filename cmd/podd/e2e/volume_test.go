//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/manifesttest"
	"podd/server"
)

// TestEphemeralVolume checks that the claim of an ephemeral volume is kept when a container
// exits or podd is killed, and is removed with its pod.
func TestEphemeralVolume(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", shell("main", "echo run >>/data/x; "+writeTrace("data", "cat /data/x; stat -c %g /data")+
		"trap 'exit 0' TERM; until [ -e /trace/end ]; do sleep 0.1; done; rm /trace/end; exit 1"))
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(4321))}
	withVolume(p, "data", "/data", v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "demo"}},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}}})
	d.apply(p)
	view := d.untilApplied("web")
	if got, want := d.readTrace("data"), "run\n4321"; got != want {
		t.Errorf("data and group in the container: got %q, want %q", got, want)
	}
	d.crash()
	d.touch("end")
	d.untilPod("is restarted", "web", func(p *server.PodView) error {
		if restarts(p, "main") != 1 {
			return fmt.Errorf("got %d restarts, want 1", restarts(p, "main"))
		}
		return nil
	})
	d.eventually("the restarted container reads the data of both runs", func() error {
		if got, want := d.readTrace("data"), "run\nrun\n4321"; got != want {
			return fmt.Errorf("data and group in the container: got %q, want %q", got, want)
		}
		return nil
	})
	dir := filepath.Join(d.root(), "pods", string(view.Pod.UID))
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	d.remove("web")
	d.untilGone("web")
	d.wantNothingLeft()
	if left, err := pathsIn(filepath.Join(d.root(), "claims")); err != nil || len(left) > 0 {
		t.Errorf("directories of claims after the pod was removed: got %v, error %v; want none", left, err)
	}
}

// TestProjectedVolumes checks the paths and modes of the files in ConfigMap, Secret, downward API
// and projected volumes. The files of an optional object must appear when the object is created.
func TestProjectedVolumes(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	local := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	field := func(path, from string, mode *int32) v1.DownwardAPIVolumeFile {
		return v1.DownwardAPIVolumeFile{Path: path, Mode: mode, FieldRef: &v1.ObjectFieldSelector{FieldPath: from}}
	}
	c := shell("main", writeTrace("files", "cd /down; for f in name labels sub/cpu; do echo $f $(stat -L -c %a $f) $(cat $f); done; "+
		"cd /all; for f in conf/port key ns; do echo $f $(stat -L -c %a $f) $(cat $f); done; ls /conf; readlink /conf/p; touch /conf/x 2>/dev/null || echo read-only; ls /late")+
		"trap 'exit 0' TERM; until [ -e /late/k ]; do sleep 0.05; done; "+writeTrace("late", "cat /late/k")+"sleep 3600 & wait")
	c.Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("300m")}
	p := d.pod("web", c)
	p.Labels = map[string]string{"app": "demo"}
	withVolume(p, "down", "/down", v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{DefaultMode: new(int32(0o440)), Items: []v1.DownwardAPIVolumeFile{
		field("name", "metadata.name", nil), field("labels", "metadata.labels", new(int32(0o400))),
		{Path: "sub/cpu", ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "main", Resource: "limits.cpu", Divisor: resource.MustParse("1m")}},
	}}})
	withVolume(p, "all", "/all", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: new(int32(0o444)), Sources: []v1.VolumeProjection{
		{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: local("conf"), Items: []v1.KeyToPath{{Key: "port", Path: "conf/port", Mode: new(int32(0o600))}}}},
		{Secret: &v1.SecretProjection{LocalObjectReference: local("key"), Items: []v1.KeyToPath{{Key: "pass", Path: "key"}}}},
		{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{field("ns", "metadata.namespace", nil)}}},
		{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: local("none"), Optional: new(true)}},
	}}})
	withVolume(p, "conf", "/conf", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
		LocalObjectReference: local("conf"), Items: []v1.KeyToPath{{Key: "port", Path: "p"}},
	}})
	withVolume(p, "late", "/late", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: local("late"), Optional: new(true)}})
	d.write("objects", manifestText(d, newConfigMap("conf", map[string]string{"port": "80", "other": "x"}), newSecret("key", "", map[string]string{"pass": password})))
	d.apply(p)
	d.untilApplied("web")
	want := strings.Join([]string{
		"name 440 " + d.podName("web"), `labels 400 app="demo"`, "sub/cpu 440 300",
		"conf/port 600 80", "key 444 " + password, "ns 444 default", "p", "..data/p", "read-only",
	}, "\n")
	if got := d.readTrace("files"); got != want {
		t.Errorf("files in the container: got\n%s\nwant\n%s", got, want)
	}
	was := d.container("web", "main")
	d.write("late", manifestText(d, newConfigMap("late", map[string]string{"k": "came"})))
	if got, want := d.readTrace("late"), "came"; got != want {
		t.Errorf("file of the optional ConfigMap in the container: got %q, want %q", got, want)
	}
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after the optional ConfigMap was created: got %+v, want %+v", now, was)
	}
}

// TestEnvFiles checks environment variables with fileKeyRef. An init container writes one of the files,
// and a container writes the other one. A container must wait until its file exists, and its status must
// name this file.
func TestEnvFiles(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	fromFile := func(name, path string, optional bool) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "vars", Path: path, Key: name, Optional: &optional}}}
	}
	main := shell("main", writeTrace("env", `echo "$TOKEN ${OTHER-none}"`)+"until [ -e /trace/write ]; do sleep 0.1; done; "+
		`echo "LATE='came'" >/vars/.late; mv /vars/.late /vars/late.env; sleep 3600 & wait`)
	main.Env = []v1.EnvVar{fromFile("TOKEN", "job.env", false), fromFile("OTHER", "job.env", true)}
	late := shell("late", writeTrace("late", `echo "$LATE"`)+"sleep 3600 & wait")
	late.Env = []v1.EnvVar{fromFile("LATE", "late.env", false)}
	p := d.pod("web", main, late)
	withVolume(p, "vars", "/vars", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	write := shell("write", `printf "# written by an init container\nTOKEN='two\nlines'\n" >/vars/job.env`)
	write.VolumeMounts = p.Spec.Containers[0].VolumeMounts
	p.Spec.InitContainers = []v1.Container{write}
	d.apply(p)
	d.untilPod("waits for the file", "web", func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if w := c.State.Waiting; c.Name == "late" && w != nil && w.Reason == "CreateContainerConfigError" && strings.Contains(w.Message, `file "late.env" of volume "vars" does not exist`) {
				return nil
			}
		}
		return fmt.Errorf("got status %+v, want container late waiting with CreateContainerConfigError", p.Pod.Status.ContainerStatuses)
	})
	if got, want := d.readTrace("env"), "two\nlines none"; got != want {
		t.Errorf("environment variables of container main: got %q, want %q", got, want)
	}
	d.touch("write")
	if got, want := d.readTrace("late"), "came"; got != want {
		t.Errorf("environment variable of container late: got %q, want %q", got, want)
	}
}

// TestHostPathVolume checks a claim that is bound to a PersistentVolume with a hostPath.
func TestHostPathVolume(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	host := filepath.Join(d.dir, "host")
	pv, c := blockVolume(host)
	pv.Spec.VolumeMode, c.Spec.VolumeMode = nil, nil
	pv.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: host, Type: new(v1.HostPathDirectoryOrCreate)}}
	d.write("disk", manifestText(d, pv, c))
	p := d.podWithClaim("web", "disk")
	d.apply(p)
	d.untilApplied("web")
	d.readTrace("web.data")
	d.remove("web")
	d.untilGone("web")
	d.wantNothingLeft()
	if text, err := os.ReadFile(filepath.Join(host, "x")); string(text) != "web\n" {
		t.Errorf("file of the pod in the host path: got %q, error %v; want %q", text, err, "web\n")
	}
}

// newTrustBundle returns a ClusterTrustBundle with the label stage=prod.
func newTrustBundle(name, signer, certificate string) *certificates.ClusterTrustBundle {
	return &certificates.ClusterTrustBundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "ClusterTrustBundle"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"stage": "prod"}},
		Spec:       certificates.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: certificate},
	}
}

// TestTrustBundles checks that a pod waits until a required ClusterTrustBundle is defined in a manifest
// file of the same source. When a bundle changes, podd must update the pod's files without a restart.
func TestTrustBundles(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	a, b := manifesttest.CACertificate(t, "a"), manifesttest.CACertificate(t, "b")
	mesh := v1.ClusterTrustBundleProjection{SignerName: new("example.com/mesh"), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}, Optional: new(true), Path: "mesh.pem"}
	p := d.pod("web", shell("main", writeTrace("roots", "stat -L -c %a /trust/roots.pem; stat -L -c %s /trust/mesh.pem; cat /trust/roots.pem")+
		"trap 'exit 0' TERM; until [ -s /trust/mesh.pem ]; do sleep 0.05; done; "+writeTrace("mesh", "cat /trust/mesh.pem")+
		"until grep -q CERT /trust/roots.pem && ! cmp -s /trust/roots.pem /trust/mesh.pem; do sleep 0.05; done; "+writeTrace("changed", "cat /trust/roots.pem")+"sleep 3600 & wait"))
	withVolume(p, "trust", "/trust", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: new(int32(0o444)), Sources: []v1.VolumeProjection{
		{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Name: new("roots"), Path: "roots.pem"}}, {ClusterTrustBundle: &mesh},
	}}})
	d.apply(p)
	d.untilPod("waits for the bundle", "web", func(p *server.PodView) error {
		if want := `ClusterTrustBundle "roots"`; !strings.Contains(p.Why, want) {
			return fmt.Errorf("got the reason %q, want %s in it", p.Why, want)
		}
		return nil
	})
	d.write("roots", manifestText(d, newTrustBundle("roots", "", "# Root A\n"+a)))
	d.untilApplied("web")
	was := d.container("web", "main")
	if got, want := d.readTrace("roots"), "444\n0\n"+strings.TrimSpace(a); got != want {
		t.Errorf("modes and certificates in the container: got\n%s\nwant\n%s", got, want)
	}
	d.write("mesh", manifestText(d, newTrustBundle("example.com:mesh:1", "example.com/mesh", a)))
	if got, want := d.readTrace("mesh"), strings.TrimSpace(a); got != want {
		t.Errorf("certificates of the signer in the container: got\n%s\nwant\n%s", got, want)
	}
	d.write("roots", manifestText(d, newTrustBundle("roots", "", b+a)))
	if got, want := d.readTrace("changed"), strings.TrimSpace(b+a); got != want {
		t.Errorf("certificates in the container after the bundle was changed: got\n%s\nwant\n%s", got, want)
	}
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after the bundles were changed: got %v, want %v", now, was)
	}
	d.remove("web")
	d.untilGone("web")
	d.wantNothingLeft()
}
