//go:build e2e

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/runtime/runtimetest/stack/registry"
)

func configMap(name string, data map[string]string) *v1.ConfigMap {
	return &v1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data,
	}
}

func secret(name string, kind v1.SecretType, data map[string]string) *v1.Secret {
	return &v1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, StringData: data,
	}
}

const (
	password = "hunter2 of podd"
	newer    = "hunter3 of podd"
)

// reading is a pod whose container reads the ConfigMap conf and the Secret key,
// as files and as variables, tells what it sees and then follows the files.
func (d *daemon) reading(name string) *v1.Pod {
	c := shell("main", tell(name+".env", `echo "$PORT $C_port $PASS"`)+
		tell(name+".files", `cat /conf/port /key/sub/pass; stat -L -c %a /key/sub/pass; id -G; grep ' /key ' /proc/mounts; cat /all/labels`)+
		`trap 'exit 0' TERM; while :; do cat /conf/port /key/sub/pass >/trace/.now; mv /trace/.now /trace/`+name+`.now; sleep 0.02; done`)
	local := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	c.EnvFrom = []v1.EnvFromSource{{Prefix: "C_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: local("conf")}}}
	c.Env = []v1.EnvVar{
		{Name: "PORT", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: local("conf"), Key: "port"}}},
		{Name: "PASS", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: local("key"), Key: "pass"}}},
	}
	p := d.pod(name, c)
	p.Labels = map[string]string{"app": "demo"}
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(4321))}
	withVolume(p, "conf", "/conf", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: local("conf")}})
	withVolume(p, "key", "/key", v1.VolumeSource{Secret: &v1.SecretVolumeSource{
		SecretName: "key", Items: []v1.KeyToPath{{Key: "pass", Path: "sub/pass", Mode: new(int32(0o400))}},
	}})
	withVolume(p, "all", "/all", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{Secret: &v1.SecretProjection{LocalObjectReference: local("key")}},
		{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
	}}})
	return p
}

// provide writes both objects into one file beside the pods.
func (d *daemon) provide(port, pass string) {
	d.t.Helper()
	d.write("objects", text(d, configMap("conf", map[string]string{"port": port + "\n"}), secret("key", "", map[string]string{"pass": pass + "\n"})))
}

// untilReads waits until the pod's container reads these from its files.
func (d *daemon) untilReads(name, port, pass string) {
	d.t.Helper()
	d.eventually(name+" reads "+port, func() error {
		got, err := os.ReadFile(filepath.Join(d.shared(), name+".now"))
		if want := port + "\n" + pass + "\n"; err == nil && string(got) != want {
			err = fmt.Errorf("it reads %q", got)
		}
		return err
	})
}

// tellsNoSecret looks where a Secret's data must not be.
func (d *daemon) tellsNoSecret() {
	d.t.Helper()
	log, err := os.ReadFile(d.output())
	if err != nil {
		d.t.Fatal(err)
	}
	view, err := d.state()
	if err != nil {
		d.t.Fatal(err)
	}
	state, err := json.Marshal(view)
	if err != nil {
		d.t.Fatal(err)
	}
	said := map[string]string{"the log": string(log), "the state": string(state)}
	for _, words := range [][]string{{"ps"}, {"why", "web"}} {
		out, talk := d.verb(words...)
		said[words[0]] = out + talk
	}
	for where, text := range said {
		for _, secret := range []string{password, newer} {
			if strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))[:16]) {
				d.t.Errorf("%s tells the password", where)
			}
		}
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.reading("web"))
	d.untilProblem("web", `ConfigMap "conf" (web.yaml:`, "is not defined in "+d.manifests(), "the pod starts when it is there")
	d.provide("80", password)
	view := d.untilApplied("web")
	if got, want := strings.Join(strings.Fields(d.told("web.env")), " "), "80 80 "+password; got != want {
		t.Errorf("the variables are %q, want %q", got, want)
	}
	files := strings.Split(d.told("web.files"), "\n")
	if len(files) != 6 || files[0] != "80" || files[1] != password || files[2] != "440" || !strings.Contains(files[3], "4321") ||
		!strings.Contains(files[4], " tmpfs ro") || files[5] != `app="demo"` {
		t.Errorf("inside there is %q", files)
	}
	was := d.runs("web", "main")
	d.untilReads("web", "80", password)
	d.provide("8080", newer)
	d.untilReads("web", "8080", newer)

	// What changed while podd was away is followed, and nothing restarts.
	d.kill()
	d.provide("9090", newer)
	d.start()
	d.untilReads("web", "9090", newer)
	if now := d.runs("web", "main"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	d.tellsNoSecret()

	// They go: the pod runs on with what it has.
	d.remove("objects")
	d.untilProblem("web", `ConfigMap "conf"`, "the pod keeps running")
	if now := d.runs("web", "main"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	d.untilReads("web", "9090", newer)

	// podd is killed and the pod goes: of its files nothing is left.
	d.kill()
	d.remove("web")
	d.start()
	// A podd that has only just begun shows no pod yet.
	d.eventually("nothing is left of the pod's files", func() error {
		if _, err := os.Stat(filepath.Join(d.root(), "pods", string(view.Pod.UID))); !os.IsNotExist(err) {
			return fmt.Errorf("its directory is left: %v", err)
		}
		if left, err := d.mounts(); err != nil || len(left) > 0 {
			return fmt.Errorf("mounts are left: %v, %v", left, err)
		}
		return nil
	})
}

func TestRestartOnChange(t *testing.T) {
	t.Parallel()
	d := begin(t)
	p := d.reading("web")
	p.Annotations = map[string]string{"podd/restart-on-change": "true"}
	d.provide("80", password)
	d.apply(p)
	d.untilApplied("web")
	was := d.runs("web", "main")
	d.crash()
	d.untilApplied("web")
	if now := d.runs("web", "main"); now != was {
		t.Errorf("after kill -9 it is %+v, was %+v", now, was)
	}
	if err := os.Remove(filepath.Join(d.shared(), "web.env")); err != nil {
		t.Fatal(err)
	}
	d.provide("80", newer)
	if got := d.told("web.env"); !strings.HasSuffix(got, newer) {
		t.Errorf("the variables are %q", got)
	}
	d.untilApplied("web")
	if now := d.runs("web", "main"); now.Sandbox == was.Sandbox || alive(was.PID) {
		t.Errorf("it is %+v, was %+v", now, was)
	}
}

func TestPullSecrets(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, ref := withRegistry(d, registry.Options{User: "ann", Password: "hunter2"})
	p := d.pod("web", from(ref, shell("main", serve("web"))))
	p.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "pull"}}
	d.apply(p)
	d.untilProblem("web", "401", r.Host(), `the Secret "pull" of its imagePullSecrets is not in `+d.manifests())
	auth := fmt.Sprintf(`{"auths": {%q: {"username": "ann", "password": "hunter2"}}}`, r.Host())
	d.write("pull", text(d, secret("pull", v1.SecretTypeDockerConfigJson, map[string]string{v1.DockerConfigJsonKey: auth})))
	d.untilApplied("web")
	if log, err := os.ReadFile(d.output()); err != nil || strings.Contains(string(log), "hunter2") {
		t.Errorf("the log tells the password: %v", err)
	}
}

// TestRunReadsObjects: for a run to completion objects stand beside the pods, and
// what is not defined in any of the files never comes.
func TestRunReadsObjects(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	c := shell("main", `echo "$PASS"; cat /key/pass`)
	c.Env = []v1.EnvVar{{Name: "PASS", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "key"}, Key: "pass"}}}}
	p := d.job("job", v1.RestartPolicyNever, c)
	withVolume(p, "key", "/key", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "key"}})
	d.writePods("pods", p)
	r := d.run("pods.yaml")
	r.ends(125, `Secret "key" is not defined in any of the files`, "nothing was started")
	d.write("key", text(d, secret("key", "", map[string]string{"pass": password})))
	r = d.run("pods.yaml", "key.yaml")
	r.ends(0)
	if out := r.out.String(); strings.Count(out, password) != 2 || strings.Contains(r.err.String(), password) {
		t.Errorf("stdout %q, stderr %q", out, r.err.String())
	}
}
