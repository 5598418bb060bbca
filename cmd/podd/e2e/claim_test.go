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

// diskOf is a volume of this machine that the claims of a class fit.
func diskOf(class, path string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: class,
			Capacity:               v1.ResourceList{v1.ResourceStorage: resource.MustParse("10Gi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
		},
	}
}

func claim(name string, mode v1.PersistentVolumeAccessMode) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{mode},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// counting appends to a file of its claim and tells what is in it.
func (d *daemon) counting(name, claimName string) *v1.Pod {
	p := d.pod(name, shell("main", "echo "+name+" >>/data/x; "+tell(name+".data", "cat /data/x; stat -c %g /data/x")+serve(name)))
	withVolume(p, "data", "/data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}})
	return p
}

// refuses runs a verb that must fail, and returns what it says.
func (d *daemon) refuses(words ...string) string {
	d.t.Helper()
	var talk bytes.Buffer
	cmd := exec.CommandContext(d.t.Context(), binary, words...)
	cmd.Stderr = &talk
	if err := cmd.Run(); err == nil {
		d.t.Errorf("podd %s succeeds", strings.Join(words, " "))
	}
	return talk.String()
}

func TestClaims(t *testing.T) {
	t.Parallel()
	d := begin(t)
	volume := func(words ...string) []string {
		words = append([]string{"volume"}, words...)
		return append(words, "--root-dir", d.root(), "--pod-manifest-path", d.manifests(), "--hostname-override", d.host)
	}
	p := d.counting("web", "data")
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(4321))}
	d.apply(p)
	d.untilProblem("web", `PersistentVolumeClaim "data" (web.yaml:`, "is not defined in "+d.manifests(), "the pod starts when it is there")
	d.write("claim", text(d, claim("data", v1.ReadWriteOnce)))
	d.untilApplied("web")
	if got := d.told("web.data"); got != "web\n4321" {
		t.Errorf("inside there is %q", got)
	}
	out, _ := d.verb("volume", "ls")
	path := filepath.Join(d.root(), "claims", "default", "data")
	for _, want := range []string{"default", "data", "1Gi", "web", "claim.yaml:1", path} {
		if !strings.Contains(out, want) {
			t.Errorf("podd volume ls says %q, without %s", out, want)
		}
	}

	// Two pods of one node share it.
	d.apply(d.counting("two", "data"))
	d.untilApplied("two")
	if got := d.told("two.data"); got != "web\ntwo\n4321" {
		t.Errorf("the second pod sees %q", got)
	}
	if got := d.refuses(volume("rm", "data")...); !strings.Contains(got, "claim.yaml:1 wants it") {
		t.Errorf("podd volume rm says %q", got)
	}

	// podd is killed, the pods and the claim go: the data stays.
	d.remove("claim")
	d.untilProblem("web", "the pod keeps running")
	if got := d.refuses(volume("rm", "default/data")...); !strings.Contains(got, "pods use it: two,web") {
		t.Errorf("podd volume rm says %q", got)
	}
	d.kill()
	d.remove("web")
	d.remove("two")
	d.start()
	d.untilGone("web")
	d.untilGone("two")
	d.nothingLeft()
	if text, err := os.ReadFile(filepath.Join(path, "x")); string(text) != "web\ntwo\n" {
		t.Errorf("the claim holds %q, %v", text, err)
	}
	d.write("claim", text(d, claim("data", v1.ReadWriteOnce)))
	d.apply(d.counting("three", "data"))
	d.untilApplied("three")
	if got := d.told("three.data"); got != "web\ntwo\nthree\n4321" {
		t.Errorf("the next pod sees %q", got)
	}
	d.remove("three")
	d.remove("claim")
	d.untilGone("three")
	d.nothingLeft()
	if _, talk := d.verb(volume("rm", "data")...); !strings.Contains(talk, "claim default/data removed") {
		t.Errorf("podd volume rm says %q", talk)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the claim is left: %v", err)
	}
}

func TestClaimOfOnePod(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.write("claim", text(d, claim("data", v1.ReadWriteOncePod)))
	d.apply(d.counting("one", "data"))
	d.untilApplied("one")
	d.apply(d.counting("two", "data"))
	d.untilProblem("two", "claim data is ReadWriteOncePod and used by default/one")
	d.remove("one")
	d.untilGone("one")
	d.untilApplied("two")
}

func TestClaimOfAVolume(t *testing.T) {
	t.Parallel()
	d := begin(t)
	host := filepath.Join(d.dir, "host")
	if err := os.MkdirAll(host, 0o777); err != nil {
		t.Fatal(err)
	}
	pv := diskOf("local", host)
	c := claim("data", v1.ReadWriteOnce)
	c.Spec.StorageClassName = new("local")
	d.write("claim", text(d, pv, c))
	d.apply(d.counting("web", "data"))
	d.untilApplied("web")
	d.told("web.data")
	if text, err := os.ReadFile(filepath.Join(host, "x")); string(text) != "web\n" {
		t.Errorf("the volume holds %q, %v", text, err)
	}
	// Without its volume the claim gets no other.
	d.write("claim", text(d, c))
	d.remove("web")
	d.untilGone("web")
	d.apply(d.counting("web", "data"))
	d.untilProblem("web", `was bound to the PersistentVolume "disk"`)
	d.write("claim", text(d, pv, c))
	d.untilApplied("web")
}

// TestClaimStays: a claim whose data is in a directory of podd's keeps it when a
// volume comes that fits it.
func TestClaimStays(t *testing.T) {
	t.Parallel()
	d := begin(t)
	host := filepath.Join(d.dir, "host")
	if err := os.MkdirAll(host, 0o777); err != nil {
		t.Fatal(err)
	}
	d.write("claim", text(d, claim("data", v1.ReadWriteOnce)))
	d.apply(d.counting("web", "data"))
	d.untilApplied("web")
	d.told("web.data")
	d.remove("web")
	d.untilGone("web")
	d.write("disk", text(d, diskOf("", host)))
	d.apply(d.counting("next", "data"))
	d.untilApplied("next")
	if got, _, _ := strings.Cut(d.told("next.data"), "\n0"); got != "web\nnext" {
		t.Errorf("the claim holds %q", got)
	}
	if entries, err := os.ReadDir(host); err != nil || len(entries) > 0 {
		t.Errorf("the volume holds %v, %v", entries, err)
	}
}
