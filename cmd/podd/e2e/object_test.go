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

func newConfigMap(name string, data map[string]string) *v1.ConfigMap {
	return &v1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data,
	}
}

func newSecret(name string, kind v1.SecretType, data map[string]string) *v1.Secret {
	return &v1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, StringData: data,
	}
}

const (
	password = "hunter2 of podd"
	newer    = "hunter3 of podd"
)

// objectPod returns a pod that uses the ConfigMap conf and the Secret key as files and as environment
// variables. At its start, the pod writes the variables to /trace/NAME.env and the files to
// /trace/NAME.files. Then it repeatedly writes the current content of the files to /trace/NAME.now.
func (d *daemon) objectPod(name string) *v1.Pod {
	c := shell("main", writeTrace(name+".env", `echo "$PORT $C_port $PASS"`)+
		writeTrace(name+".files", `cat /conf/port /key/sub/pass; stat -L -c %a /key/sub/pass; id -G; grep ' /key ' /proc/mounts; cat /all/labels`)+
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

// writeObjects writes the ConfigMap and the Secret to one manifest file.
func (d *daemon) writeObjects(port, pass string) {
	d.t.Helper()
	d.write("objects", manifestText(d, newConfigMap("conf", map[string]string{"port": port + "\n"}), newSecret("key", "", map[string]string{"pass": pass + "\n"})))
}

// untilReads waits until the files in the pod's container contain these values.
func (d *daemon) untilReads(name, port, pass string) {
	d.t.Helper()
	d.eventually(name+" reads "+port, func() error {
		got, err := os.ReadFile(filepath.Join(d.traceDir(), name+".now"))
		if want := port + "\n" + pass + "\n"; err == nil && string(got) != want {
			err = fmt.Errorf("files in the container: got %q, want %q", got, want)
		}
		return err
	})
}

// wantNoSecret checks that podd's log and outputs do not contain the data of the Secret.
func (d *daemon) wantNoSecret() {
	d.t.Helper()
	log, err := os.ReadFile(d.logFile())
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
	texts := map[string]string{"the log": string(log), "the state": string(state)}
	for _, words := range [][]string{{"ps"}, {"why", "web"}} {
		out, stderr := d.verb(words...)
		texts[words[0]] = out + stderr
	}
	for where, text := range texts {
		for _, secret := range []string{password, newer} {
			if strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))[:16]) {
				d.t.Errorf("%s: got the data of a Secret in it, want none", where)
			}
		}
	}
}

func TestConfigMapsAndSecrets(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.objectPod("web"))
	d.untilProblem("web", `ConfigMap "conf" (web.yaml:`, "is not defined in "+d.manifestDir(), "the pod starts when the object exists")
	d.writeObjects("80", password)
	view := d.untilApplied("web")
	if got, want := strings.Join(strings.Fields(d.readTrace("web.env")), " "), "80 80 "+password; got != want {
		t.Errorf("environment variables in the container: got %q, want %q", got, want)
	}
	files := strings.Split(d.readTrace("web.files"), "\n")
	if len(files) != 6 || files[0] != "80" || files[1] != password || files[2] != "440" || !strings.Contains(files[3], "4321") ||
		!strings.Contains(files[4], " tmpfs ro") || files[5] != `app="demo"` {
		t.Errorf("files in the container: got %q, want the values, mode 440, the group, a read-only tmpfs and the label", files)
	}
	was := d.container("web", "main")
	d.untilReads("web", "80", password)
	d.writeObjects("8080", newer)
	d.untilReads("web", "8080", newer)

	// Changes that are made while podd does not run take effect when it starts, without a
	// restart of the container.
	d.kill()
	d.writeObjects("9090", newer)
	d.start()
	d.untilReads("web", "9090", newer)
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after the objects were changed: got %+v, want %+v", now, was)
	}
	d.wantNoSecret()

	// After the objects are removed, the pod keeps running with the last data.
	d.remove("objects")
	d.untilProblem("web", `ConfigMap "conf"`, "the pod keeps running")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after the objects were removed: got %+v, want %+v", now, was)
	}
	d.untilReads("web", "9090", newer)

	// If the pod is removed while podd does not run, its files are removed when podd starts.
	d.kill()
	d.remove("web")
	d.start()
	// The test checks the host, because podd shows no pods immediately after its start.
	d.eventually("the pod directory and its mounts are removed", func() error {
		if _, err := os.Stat(filepath.Join(d.root(), "pods", string(view.Pod.UID))); !os.IsNotExist(err) {
			return fmt.Errorf("pod directory: got error %v, want an error because the directory does not exist", err)
		}
		if left, err := d.mounts(); err != nil || len(left) > 0 {
			return fmt.Errorf("got mounts %v, error %v; want none", left, err)
		}
		return nil
	})
}

func TestRestartOnChange(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.objectPod("web")
	p.Annotations = map[string]string{"podd/restart-on-change": "true"}
	d.writeObjects("80", password)
	d.apply(p)
	d.untilApplied("web")
	was := d.container("web", "main")
	d.crash()
	d.untilApplied("web")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after podd was killed: got %+v, want %+v", now, was)
	}
	d.readTrace("web.env") // wait, because the container may not have written this file yet
	if err := os.Remove(filepath.Join(d.traceDir(), "web.env")); err != nil {
		t.Fatal(err)
	}
	d.writeObjects("80", newer)
	if got := d.readTrace("web.env"); !strings.HasSuffix(got, newer) {
		t.Errorf("environment variables after the Secret was changed: got %q, want the suffix %q", got, newer)
	}
	d.untilApplied("web")
	if now := d.container("web", "main"); now.Sandbox == was.Sandbox || alive(was.PID) {
		t.Errorf("after the Secret was changed: got container %+v, old process alive: %t; want a container in a sandbox other than that of %+v, old process alive: false", now, alive(was.PID), was)
	}
}

func TestPullSecrets(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{User: "ann", Password: "hunter2"})
	p := d.pod("web", withImage(ref, shell("main", serve("web"))))
	p.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "pull"}}
	d.apply(p)
	d.untilProblem("web", "401", r.Host(), `the Secret "pull" in the pod's imagePullSecrets is not defined in `+d.manifestDir())
	auth := fmt.Sprintf(`{"auths": {%q: {"username": "ann", "password": "hunter2"}}}`, r.Host())
	d.write("pull", manifestText(d, newSecret("pull", v1.SecretTypeDockerConfigJson, map[string]string{v1.DockerConfigJsonKey: auth})))
	d.untilApplied("web")
	if log, err := os.ReadFile(d.logFile()); err != nil || strings.Contains(string(log), "hunter2") {
		t.Errorf("podd's log: got the password in it, or a read error (%v); want no password", err)
	}
}

// TestRunOnce_ReferencedObjects checks that podd run --runonce reads objects from the given
// files, and fails if no file contains an object to which a pod refers.
func TestRunOnce_ReferencedObjects(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	c := shell("main", `echo "$PASS"; cat /key/pass`)
	c.Env = []v1.EnvVar{{Name: "PASS", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "key"}, Key: "pass"}}}}
	p := d.jobPod("job", v1.RestartPolicyNever, c)
	withVolume(p, "key", "/key", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "key"}})
	d.writePods("pods", p)
	r := d.run("pods.yaml")
	r.wantExit(125, `Secret "key" is not defined in any of the files`, "nothing was started")
	d.write("key", manifestText(d, newSecret("key", "", map[string]string{"pass": password})))
	r = d.run("pods.yaml", "key.yaml")
	r.wantExit(0)
	if out := r.out.String(); strings.Count(out, password) != 2 || strings.Contains(r.err.String(), password) {
		t.Errorf("podd run: got stdout %q and stderr %q, want the password twice in stdout and never in stderr", out, r.err.String())
	}
}
