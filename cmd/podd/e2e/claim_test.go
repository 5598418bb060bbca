//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// localVolume returns a local PersistentVolume with the given storage class and path.
func localVolume(class, path string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: class,
			Capacity:               v1.ResourceList{v1.ResourceStorage: resource.MustParse("10Gi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
		},
	}
}

func newClaim(name string, mode v1.PersistentVolumeAccessMode) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{mode},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// podWithClaim returns a pod that appends its name to the file x in the volume of the claim. It then
// writes the content and the group of this file to the file /trace/NAME.data.
func (d *daemon) podWithClaim(name, claimName string) *v1.Pod {
	p := d.pod(name, shell("main", "echo "+name+" >>/data/x; "+writeTrace(name+".data", "cat /data/x; stat -c %g /data/x")+serve(name)))
	withVolume(p, "data", "/data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}})
	return p
}

// verbFails runs a podd command, which must fail, and returns its stderr.
func (d *daemon) verbFails(words ...string) string {
	d.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(d.t.Context(), binary, words...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil {
		d.t.Errorf("podd %s: got success, want an error", strings.Join(words, " "))
	}
	return stderr.String()
}

func TestClaims(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	volume := func(words ...string) []string {
		words = append([]string{"volume"}, words...)
		return append(words, "--root-dir", d.root(), "--pod-manifest-path", d.manifestDir(), "--hostname-override", d.host)
	}
	p := d.podWithClaim("web", "data")
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(4321))}
	d.apply(p)
	d.untilProblem("web", `PersistentVolumeClaim "data" (web.yaml:`, "is not defined in "+d.manifestDir(), "the pod starts when the object exists")
	d.write("claim", manifestText(d, newClaim("data", v1.ReadWriteOnce)))
	d.untilApplied("web")
	if got, want := d.readTrace("web.data"), "web\n4321"; got != want {
		t.Errorf("data and group in the container: got %q, want %q", got, want)
	}
	out, _ := d.verb("volume", "ls")
	path := filepath.Join(d.root(), "claims", "default", "data")
	for _, want := range []string{"default", "data", "1Gi", "web", "claim.yaml:1", path} {
		if !strings.Contains(out, want) {
			t.Errorf("podd volume ls: got %q, want %s in it", out, want)
		}
	}

	// A second pod on the node can use the same claim, and podd volume rm refuses to remove a claim
	// that a manifest defines.
	d.apply(d.podWithClaim("two", "data"))
	d.untilApplied("two")
	if got, want := d.readTrace("two.data"), "web\ntwo\n4321"; got != want {
		t.Errorf("data and group in the second pod: got %q, want %q", got, want)
	}
	if got, want := d.verbFails(volume("rm", "data")...), "claim.yaml:1; delete it there first"; !strings.Contains(got, want) {
		t.Errorf("podd volume rm: got %q, want %q in it", got, want)
	}

	// The data is kept when the claim and the pods are removed, also while podd is not running.
	d.remove("claim")
	d.untilProblem("web", "the pod keeps running")
	if got, want := d.verbFails(volume("rm", "default/data")...), "pods use the claim: two,web"; !strings.Contains(got, want) {
		t.Errorf("podd volume rm: got %q, want %q in it", got, want)
	}
	d.kill()
	d.remove("web")
	d.remove("two")
	d.start()
	d.untilGone("web")
	d.untilGone("two")
	d.wantNothingLeft()
	if text, err := os.ReadFile(filepath.Join(path, "x")); string(text) != "web\ntwo\n" {
		t.Errorf("data of the removed claim: got %q, error %v; want %q", text, err, "web\ntwo\n")
	}
	d.write("claim", manifestText(d, newClaim("data", v1.ReadWriteOnce)))
	d.apply(d.podWithClaim("three", "data"))
	d.untilApplied("three")
	if got, want := d.readTrace("three.data"), "web\ntwo\nthree\n4321"; got != want {
		t.Errorf("data and group in the third pod: got %q, want %q", got, want)
	}
	d.remove("three")
	d.remove("claim")
	d.untilGone("three")
	d.wantNothingLeft()
	if _, stderr := d.verb(volume("rm", "data")...); !strings.Contains(stderr, "claim default/data removed") {
		t.Errorf("podd volume rm: got %q, want %q in it", stderr, "claim default/data removed")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("directory of the claim after podd volume rm: got error %v, want an error because the directory does not exist", err)
	}
}

func TestClaims_ReadWriteOncePod(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.write("claim", manifestText(d, newClaim("data", v1.ReadWriteOncePod)))
	d.apply(d.podWithClaim("one", "data"))
	d.untilApplied("one")
	d.apply(d.podWithClaim("two", "data"))
	d.untilProblem("two", "claim data is ReadWriteOncePod and used by default/one")
	d.remove("one")
	d.untilGone("one")
	d.untilApplied("two")
}

func TestClaims_PersistentVolume(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	host := filepath.Join(d.dir, "host")
	if err := os.MkdirAll(host, 0o777); err != nil {
		t.Fatal(err)
	}
	pv := localVolume("local", host)
	c := newClaim("data", v1.ReadWriteOnce)
	c.Spec.StorageClassName = new("local")
	d.write("claim", manifestText(d, pv, c))
	d.apply(d.podWithClaim("web", "data"))
	d.untilApplied("web")
	d.readTrace("web.data")
	if text, err := os.ReadFile(filepath.Join(host, "x")); string(text) != "web\n" {
		t.Errorf("data in the directory of the volume: got %q, error %v; want %q", text, err, "web\n")
	}
	// While its volume is missing, a bound claim is not bound to another volume, and a new pod waits.
	d.write("claim", manifestText(d, c))
	d.remove("web")
	d.untilGone("web")
	d.apply(d.podWithClaim("web", "data"))
	d.untilProblem("web", `is bound to the PersistentVolume "disk"`)
	d.write("claim", manifestText(d, pv, c))
	d.untilApplied("web")
}

// TestClaims_KeepDirectory checks a claim without a PersistentVolume, for which podd has created a
// directory. The claim must keep this directory when a matching PersistentVolume is added.
func TestClaims_KeepDirectory(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	host := filepath.Join(d.dir, "host")
	if err := os.MkdirAll(host, 0o777); err != nil {
		t.Fatal(err)
	}
	d.write("claim", manifestText(d, newClaim("data", v1.ReadWriteOnce)))
	d.apply(d.podWithClaim("web", "data"))
	d.untilApplied("web")
	d.readTrace("web.data")
	d.remove("web")
	d.untilGone("web")
	d.write("disk", manifestText(d, localVolume("", host)))
	d.apply(d.podWithClaim("next", "data"))
	d.untilApplied("next")
	if got, _, _ := strings.Cut(d.readTrace("next.data"), "\n0"); got != "web\nnext" {
		t.Errorf("data in the second pod: got %q, want %q", got, "web\nnext")
	}
	if entries, err := os.ReadDir(host); err != nil || len(entries) > 0 {
		t.Errorf("directory of the added volume: got %v, error %v; want no files", entries, err)
	}
}
