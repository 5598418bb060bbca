//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/manifesttest"
	"podd/runtime/runtimetest/stack/registry"
	"podd/server"
)

// startWritable starts a podd with an API that may create objects.
func startWritable(t *testing.T) (*daemon, *kubectl) {
	d := newDaemon(t, shared)
	d.args = append(d.args, "--api-manifest-dir", d.apiManifestDir())
	d.api = freePort(t)
	d.start()
	t.Cleanup(func() { // runs before the cleanup of newDaemon, which checks that nothing is left behind
		for _, path := range d.apiManifestFiles() {
			os.Remove(path)
		}
	})
	return d, d.kubectl()
}

func (d *daemon) apiManifestDir() string { return filepath.Join(d.dir, "api") }

func (d *daemon) apiManifestFiles() []string {
	files, _ := filepath.Glob(filepath.Join(d.apiManifestDir(), "*"))
	return files
}

// manifest writes objects to a file outside the manifest directory, and returns the path of the
// file.
func (k *kubectl) manifest(objects ...any) string {
	k.d.t.Helper()
	path := filepath.Join(k.home, "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifestText(k.d, objects...)), 0o600); err != nil {
		k.d.t.Fatal(err)
	}
	return path
}

// pod returns a pod as kubectl get prints it.
func (k *kubectl) pod(name string) *v1.Pod {
	k.d.t.Helper()
	var p v1.Pod
	if err := json.Unmarshal([]byte(k.run("get", "pod", name, "-o", "json")), &p); err != nil {
		k.d.t.Fatal(err)
	}
	return &p
}

// untilReady waits until the named pods are ready.
func (k *kubectl) untilReady(names ...string) {
	k.d.t.Helper()
	for _, name := range names {
		k.run("wait", "--for=condition=Ready", "pod/"+name, "--timeout="+patience.String())
	}
}

// untilNone waits until podd does not show any of the pods.
func (k *kubectl) untilNone(names ...string) {
	k.d.t.Helper()
	k.d.until(fmt.Sprint(names, " are deleted"), func(v *server.View) error {
		for _, name := range names {
			if v.Pod(server.Key{Namespace: "default", Name: name}) != nil {
				return fmt.Errorf("got pod %s, want none", name)
			}
		}
		return nil
	})
}

// count returns how often line occurs in all.
func count(all []string, line string) (n int) {
	for _, l := range all {
		if l == line {
			n++
		}
	}
	return n
}

// TestKubectlCreatesAndEdits checks kubectl's commands that create, edit and delete objects.
func TestKubectlCreatesAndEdits(t *testing.T) {
	t.Parallel()
	d, k := startWritable(t)
	_, another := withRegistry(d, registry.Options{}) // another name of the busybox image
	web := d.pod("web", shell("main", serve("main")), shell("side", serve("side")))
	web.Labels = map[string]string{"app": "web"}
	web.Spec.Volumes = append(web.Spec.Volumes, v1.Volume{Name: "info", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{
		Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels"}}},
	}}})
	web.Spec.Containers[1].VolumeMounts = append(web.Spec.Containers[1].VolumeMounts, v1.VolumeMount{Name: "info", MountPath: "/info"})
	file := k.manifest(web, newConfigMap("settings", map[string]string{"port": "8080"}), newSecret("pass", v1.SecretTypeOpaque, map[string]string{"word": "hidden"}))
	for _, want := range []string{"pod/web created", "configmap/settings created", "secret/pass created"} {
		if out := k.run("apply", "-f", file, "--dry-run=server"); !strings.Contains(out, want+" (server dry run)") {
			t.Errorf("kubectl apply --dry-run=server: got %q, want %q in it", out, want+" (server dry run)")
		}
	}
	if files := d.apiManifestFiles(); len(files) > 0 {
		t.Errorf("manifest files after kubectl apply --dry-run=server: got %q, want none", files)
	}
	k.wantOutput("apply -f "+file, "pod/web created", "configmap/settings created", "secret/pass created")
	k.untilReady("web")
	first := k.pod("web")
	if first.Name != "web" || len(first.UID) != 36 || first.CreationTimestamp.IsZero() || len(first.OwnerReferences) > 0 {
		t.Errorf("created pod: got %+v, want the name web, a UID, a creation time and no owner", first.ObjectMeta)
	}
	if !strings.Contains(first.Annotations[v1.LastAppliedConfigAnnotation], `"side"`) {
		t.Errorf("created pod: got the annotations %q, want %s with the applied pod", first.Annotations, v1.LastAppliedConfigAnnotation)
	}
	for _, path := range append(d.apiManifestFiles(), d.apiManifestDir()) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got mode %v, error %v; want access for the owner only", path, info.Mode(), err)
		}
	}
	k.wantOutput("apply -f "+file, "pod/web unchanged", "configmap/settings unchanged", "secret/pass ")
	k.wantFailure("create -f "+file, `pods "web" already exists`, `configmaps "settings" already exists`)

	// Mutable fields can be changed. Only the container whose image is changed restarts.
	web.Labels["tier"] = "front"
	web.Spec.Containers[0].Image = another
	file = k.manifest(web)
	k.wantOutput("apply -f "+file, "pod/web configured")
	k.wantOutput("label pod web colour=green", "pod/web labeled")
	k.wantOutput("annotate pod web note=x", "pod/web annotated")
	edit := append([]string{}, "edit", "pod", "web")
	cmd := k.command(t.Context(), edit...)
	cmd.Env = append(cmd.Env, `KUBE_EDITOR=sed -i s/colour:\ green/colour:\ blue/`)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "pod/web edited") {
		t.Errorf("kubectl edit: got error %v and output %s, want %q in the output", err, out, "pod/web edited")
	}
	d.until("pod web runs image "+another, func(v *server.View) error {
		p := v.Pod(server.Key{Namespace: "default", Name: "web"})
		if p == nil || !p.Ready || !p.IsCurrent || restarts(p, "main") != 1 || p.Pod.Spec.Containers[0].Image != another {
			return fmt.Errorf("got pod %+v, want a ready pod with 1 restart of container main", p)
		}
		return nil
	})
	now := k.pod("web")
	if now.UID != first.UID || now.Status.PodIP != first.Status.PodIP || now.Labels["colour"] != "blue" || now.Labels["tier"] != "front" || now.Annotations["note"] != "x" {
		t.Errorf("edited pod: got metadata %+v, IP %s; want IP %s, the UID in the metadata of the first version, and the new labels and annotation; first version: %+v", now.ObjectMeta, now.Status.PodIP, first.Status.PodIP, first.ObjectMeta)
	}
	if n := restartCount(now, "side"); n != 0 {
		t.Errorf("container side, whose image was not changed: got %d restarts, want 0", n)
	}
	d.eventually("only container main has restarted", func() error {
		if all := d.notes(); count(all, "main runs") != 2 || count(all, "side runs") != 1 {
			return fmt.Errorf("got the notes %q, want \"main runs\" twice and \"side runs\" once", all)
		}
		return nil
	})

	d.eventually("the downwardAPI volume contains the new labels", func() error {
		if out, stderr, err := k.try("", "exec", "web", "-c", "side", "--", "cat", "/info/labels"); err != nil || !strings.Contains(out, `colour="blue"`) {
			return fmt.Errorf("got stdout %q, stderr %s, error %v; want %q in stdout", out, stderr, err, `colour="blue"`)
		}
		return nil
	})

	web.Spec.Containers[0].Command = []string{"sleep", "1"}
	k.wantFailure("apply -f "+k.manifest(web), `The Pod "web" is invalid`, "pod updates may not change fields other than")
	bad := d.pod("bad", shell("main", "true"))
	bad.Spec.Containers[0].Image = ""
	k.wantFailure("create -f "+k.manifest(bad), `The Pod "bad" is invalid`, "spec.containers[0].image")

	web.Spec.Containers[0].Command = []string{"sh", "-c", serve("main")}
	checkServerSideApply(k, web)

	k.wantOutput("patch configmap settings --type=merge -p {\"data\":{\"port\":\"9090\"}}", "configmap/settings patched")
	k.wantOutput("get configmap settings -o jsonpath={.data.port}", "9090")
	k.wantOutput("delete configmap/settings secret/pass", `configmap "settings" deleted`, `secret "pass" deleted`)
	k.wantOutput("auth can-i create pods", "yes")

	// kubectl cannot change a pod from the manifest directory.
	d.apply(d.pod("fixed", shell("main", serve("fixed"))))
	d.untilApplied("fixed")
	k.wantFailure("delete pod "+d.podName("fixed"), "fixed.yaml")
	k.wantFailure("label pod "+d.podName("fixed")+" a=b", "fixed.yaml")
	d.remove("fixed")
	d.untilGone("fixed")

	k.wantOutput("delete pods --all", `pod "web" deleted`, `pod "other" deleted`)
	k.untilNone("web", "other")
	if files := d.apiManifestFiles(); len(files) > 0 {
		t.Errorf("manifest files after kubectl has deleted all objects: got %q, want none", files)
	}
	if all := d.notes(); !slices.Contains(all, "side TERM") {
		t.Errorf("after kubectl delete: got notes %q, want %q among them", all, "side TERM")
	}
}

// checkServerSideApply applies the pod other with several field managers, and checks conflicts between
// them. Then it applies the pod web, which was created with client-side apply.
func checkServerSideApply(k *kubectl, web *v1.Pod) {
	t := k.d.t
	other := k.d.pod("other", shell("main", serve("other")))
	checkLabel := func(want string) {
		t.Helper()
		if p := k.pod("other"); p.Labels["app"] != want {
			t.Errorf("labels of pod other: got %q, want app=%q", p.Labels, want)
		}
	}
	k.wantOutput("apply --server-side -f "+k.manifest(other), "pod/other serverside-applied")
	other.Labels = map[string]string{"app": "other"}
	k.wantOutput("apply --server-side -f "+k.manifest(other), "pod/other serverside-applied")
	checkLabel("other")
	k.wantOutput("label pod other --overwrite app=hand", "pod/other labeled")
	k.wantFailure("apply --server-side -f "+k.manifest(other), `conflict with "kubectl-label" using v1: .metadata.labels.app`)
	checkLabel("hand")
	k.wantOutput("apply --server-side --force-conflicts --dry-run=server -f "+k.manifest(other), "pod/other serverside-applied (server dry run)")
	checkLabel("hand")
	k.wantOutput("apply --server-side --force-conflicts -f "+k.manifest(other), "pod/other serverside-applied")
	checkLabel("other")
	k.wantFailure("apply --server-side --field-manager=second -f "+k.manifest(withLabel(other, "second")), `conflict with "kubectl": .metadata.labels.app`)
	other.Labels = nil
	k.wantOutput("apply --server-side -f "+k.manifest(other), "pod/other serverside-applied")
	checkLabel("")
	k.untilReady("other")
	if n := restartCount(k.pod("other"), "main"); n != 0 {
		t.Errorf("pod other after all changes of its labels: got %d restarts, want 0", n)
	}
	k.wantOutput("get pod other -o jsonpath={.metadata.managedFields} --show-managed-fields", `"manager":"kubectl"`, `"operation":"Apply"`)

	web.Labels["tier"] = "back"
	k.wantOutput("apply --server-side -f "+k.manifest(web), "pod/web serverside-applied")
	managers := k.run("get", "pod", "web", "-o", "jsonpath={.metadata.managedFields[*].manager}", "--show-managed-fields")
	if all := strings.Fields(managers); !slices.Contains(all, "kubectl") || slices.Contains(all, "kubectl-client-side-apply") {
		t.Errorf("field managers of pod web: got %q, want kubectl instead of kubectl-client-side-apply", all)
	}
	if p := k.pod("web"); p.Labels["tier"] != "back" || p.Labels["colour"] != "blue" || restartCount(p, "side") != 0 {
		t.Errorf("pod web after server-side apply: got %+v, want the labels tier=back and colour=blue and no restart of container side", p)
	}
}

// withLabel returns a copy of p with the given value of the label app.
func withLabel(p *v1.Pod, app string) *v1.Pod {
	p = p.DeepCopy()
	p.Labels["app"] = app
	return p
}

// restartCount returns the restart count in the status of a container.
func restartCount(p *v1.Pod, container string) int32 {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container {
			return s.RestartCount
		}
	}
	return -1
}

// TestKubectlCreate_KilledDaemon checks that a created pod keeps its UID, its creation time and its
// container when podd is killed. kubectl delete must delete the pod with the grace period of the pod or,
// with --grace-period or --now, with that of the request.
func TestKubectlCreate_KilledDaemon(t *testing.T) {
	t.Parallel()
	d, k := startWritable(t)
	hard := d.pod("hard", shell("main", ignoreTerm("hard")))
	hard.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	k.wantOutput("create -f "+k.manifest(hard), "pod/hard created")
	d.crash()
	k.untilReady("hard")
	first := k.pod("hard")
	d.crash()
	k.untilReady("hard")
	now := k.pod("hard")
	if now.UID != first.UID || restartCount(now, "main") != 0 || !now.CreationTimestamp.Equal(&first.CreationTimestamp) {
		t.Errorf("pod hard after podd was killed: got metadata %+v, %d restarts; want the UID and creation time in %+v, 0 restarts", now.ObjectMeta, restartCount(now, "main"), first.ObjectMeta)
	}
	d.untilNoted("hard runs")

	k.wantOutput("delete pod hard --wait=false", "deleted")
	d.until("pod hard is being deleted with a grace period of 3600 s", func(v *server.View) error {
		p := v.Pod(server.Key{Namespace: "default", Name: "hard"})
		if p == nil || p.Pod.DeletionTimestamp == nil || p.Pod.DeletionGracePeriodSeconds == nil || *p.Pod.DeletionGracePeriodSeconds != 3600 {
			return fmt.Errorf("got pod %+v, want one with a deletion timestamp and a grace period of 3600 s", p)
		}
		return nil
	})
	d.untilNoted("hard runs", "hard TERM")
	k.wantFailure("create -f "+k.manifest(hard), "being deleted")
	// kubectl delete waits until the pod is deleted. With the grace period of the first request, this
	// would take an hour. Therefore the test would fail if podd ignored the shorter grace period.
	k.wantOutput("delete pod hard --grace-period=0 --force", "deleted")
	k.untilNone("hard")

	quick := d.pod("quick", shell("main", ignoreTerm("quick")))
	quick.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	k.wantOutput("create -f "+k.manifest(quick), "pod/quick created")
	k.untilReady("quick")
	d.untilNote("quick runs")
	k.wantOutput("delete pod quick --now", "deleted")
	k.untilNone("quick")
	if all := d.notes(); !slices.Contains(all, "quick TERM") {
		t.Errorf("after kubectl delete --now: got notes %q, want %q among them", all, "quick TERM")
	}
}

// TestKubectlTrustBundles checks that kubectl creates, lists, changes and deletes ClusterTrustBundles,
// and that a pod of the API gets their certificates.
func TestKubectlTrustBundles(t *testing.T) {
	t.Parallel()
	d, k := startWritable(t)
	a, b := manifesttest.CACertificate(t, "a"), manifesttest.CACertificate(t, "b")
	roots, mesh := newTrustBundle("roots", "", a), newTrustBundle("example.com:mesh:1", "example.com/mesh", b)
	p := d.pod("web", shell("main", "until grep -q CERT /trust/mesh.pem && cmp -s /trust/roots.pem /trust/mesh.pem; do sleep 0.05; done; "+writeTrace("changed", "cat /trust/roots.pem")+"sleep 3600 & wait"))
	withVolume(p, "trust", "/trust", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Name: &roots.Name, Path: "roots.pem"}},
		{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{SignerName: &mesh.Spec.SignerName, LabelSelector: &metav1.LabelSelector{}, Path: "mesh.pem"}},
	}}})
	k.wantOutput("apply -f "+k.manifest(roots, mesh, p), "clustertrustbundle.certificates.k8s.io/roots created", "clustertrustbundle.certificates.k8s.io/example.com:mesh:1 created", "pod/web created")
	k.untilReady("web")
	k.wantOutput("get clustertrustbundles", "NAME", "SIGNERNAME", "roots", "<none>", "example.com:mesh:1", "example.com/mesh")
	k.wantOutput("get clustertrustbundle example.com:mesh:1 -o jsonpath={.spec.trustBundle}", b)
	k.wantOutput("get clustertrustbundles --field-selector spec.signerName=example.com/mesh -o name", "clustertrustbundle.certificates.k8s.io/example.com:mesh:1\n")

	roots.Spec.TrustBundle = b
	k.wantOutput("apply -f "+k.manifest(roots), "clustertrustbundle.certificates.k8s.io/roots configured")
	if got, want := d.readTrace("changed"), strings.TrimSpace(b); got != want {
		t.Errorf("certificates in the container after the bundle was changed: got\n%s\nwant\n%s", got, want)
	}
	k.wantOutput("apply --server-side --force-conflicts -f "+k.manifest(roots), "clustertrustbundle.certificates.k8s.io/roots serverside-applied")
	roots.Spec.TrustBundle = "none"
	k.wantFailure("apply -f "+k.manifest(roots), "spec.trustBundle: contains no PEM block of type CERTIFICATE")
	k.wantOutput("delete clustertrustbundle roots example.com:mesh:1", `"roots" deleted`, `"example.com:mesh:1" deleted`)
	k.wantFailure("get clustertrustbundle roots", `clustertrustbundles.certificates.k8s.io "roots" not found`)
	k.wantOutput("delete pod web", "deleted")
	k.untilNone("web")
}
