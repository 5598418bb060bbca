//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// withSubPath mounts a subPath of a volume into all containers.
func withSubPath(p *v1.Pod, volume, path, part string) {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: volume, MountPath: path, SubPath: part})
	}
}

func TestSubPaths(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	host := filepath.Join(d.dir, "host")
	if err := os.MkdirAll(filepath.Join(host, "v1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("v1", filepath.Join(host, "current")); err != nil {
		t.Fatal(err)
	}
	p := d.pod("web", shell("main", "echo hello >/own/x; "+
		writeTrace("seen", "cat /disk/default/$NAME/x /memory/m/x /conf/port; stat -c '%a %F' /own /conf/port; ls /conf")+serve("main")))
	c := &p.Spec.Containers[0]
	c.Command[2] = "echo fast >/fast/x; " + c.Command[2]
	c.Env = []v1.EnvVar{
		{Name: "NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "SPACE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
	}
	withVolume(p, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	withVolume(p, "memory", "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})
	c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: "disk", MountPath: "/own", SubPathExpr: "$(SPACE)/$(NAME)"})
	withSubPath(p, "memory", "/fast", "m")
	p.Spec.Volumes = append(p.Spec.Volumes,
		v1.Volume{Name: "conf", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}}}},
		v1.Volume{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: host}}})
	withSubPath(p, "conf", "/conf/port", "port")
	withSubPath(p, "host", "/current", "current")
	d.write("objects", manifestText(d, newConfigMap("conf", map[string]string{"port": "80\n", "other": ""})))
	d.apply(p)
	view := d.untilApplied("web")
	if got, want := d.readTrace("seen"), "hello\nfast\n80\n777 directory\n644 regular file\nport"; got != want {
		t.Errorf("files and modes in the container: got %q, want %q", got, want)
	}
	staged := filepath.Join(d.root(), "pods", string(view.Pod.UID), "volume-subpaths")
	if _, err := os.Stat(filepath.Join(staged, "conf", "main", "5")); err != nil {
		t.Error(err)
	}

	// If the pod is removed while podd does not run, podd removes all mounts and directories of its
	// subPaths at its next start, but nothing below the host path.
	d.kill()
	d.remove("web")
	d.start()
	d.untilGone("web")
	d.wantNothingLeft()
	if left, err := os.ReadDir(host); err != nil || len(left) != 2 {
		t.Errorf("directory of the hostPath volume after the pod was removed: got %v, error %v; want its two entries", left, err)
	}
}

// TestSubPath_Symlink checks that podd rejects a subPath that is a symlink out of the volume. Otherwise a
// container could access the host.
func TestSubPath_Symlink(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", shell("main", writeTrace("seen", "ls /part")+serve("main")))
	init := shell("init", "ln -s /etc /disk/part")
	init.VolumeMounts = append(init.VolumeMounts, v1.VolumeMount{Name: "disk", MountPath: "/disk"})
	p.Spec.InitContainers = []v1.Container{init}
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	withSubPath(p, "disk", "/part", "part")
	d.apply(p)
	d.untilPod("waits", "web", waitingFor("main", "CreateContainerConfigError"))
	d.untilPod("shows the reason", "web", func(p *server.PodView) error {
		if state := p.Pod.Status.ContainerStatuses[0].State.Waiting; state == nil || !strings.Contains(state.Message, `subPath "part" of volume "disk"`) || !strings.Contains(state.Message, "leads out") {
			return fmt.Errorf("got the state %+v, want a message that subPath \"part\" of volume \"disk\" leads out of the volume", state)
		}
		return nil
	})
	if all := d.containers("web", "main"); len(all) > 0 {
		t.Errorf("container with the rejected subPath: got running containers %+v, want none", all)
	}
}
