//go:build e2e

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/render"
	"podd/runtime"
	"podd/runtime/runtimetest/stack"
)

// supportedImageVolumes returns which image volumes the runtime supports, and the version of the
// runtime.
func (d *daemon) supportedImageVolumes() (serves render.ImageVolumeSupport, version string) {
	d.t.Helper()
	v, err := cri.NewRuntimeServiceClient(d.dial()).Version(d.t.Context(), &cri.VersionRequest{})
	if err != nil {
		d.t.Fatal(err)
	}
	return render.SupportedImageVolumes(runtime.Node{Name: v.GetRuntimeName(), Version: v.GetRuntimeVersion()}), v.GetRuntimeVersion()
}

func TestImageVolumes(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	serves, version := d.supportedImageVolumes()
	image := v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: stack.BusyboxImage, PullPolicy: v1.PullIfNotPresent}}
	whole := d.pod("whole", shell("main", writeTrace("whole", "ls -d /image/bin/sh; touch /image/x 2>/dev/null || echo read-only")+serve("whole")))
	withVolume(whole, "image", "/image", image)
	part := d.pod("part", shell("main", writeTrace("part", "ls -d /commands/sh")+serve("part")))
	part.Spec.Volumes = append(part.Spec.Volumes, v1.Volume{Name: "image", VolumeSource: image})
	withSubPath(part, "image", "/commands", "bin")
	never := d.pod("never", shell("main", serve("never")))
	withVolume(never, "image", "/image", v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "podd.test/nowhere:1", PullPolicy: v1.PullNever}})
	d.apply(whole, part, never)
	if !serves.SupportsVolumes {
		d.untilProblem("whole", "image volumes are not supported by", version)
		return
	}
	d.untilApplied("whole")
	if got, want := d.readTrace("whole"), "/image/bin/sh\nread-only"; got != want {
		t.Errorf("in the image volume: got %q, want %q", got, want)
	}
	if serves.SupportsSubPaths {
		d.untilApplied("part")
		if got, want := d.readTrace("part"), "/commands/sh"; got != want {
			t.Errorf("in the subPath of the image volume: got %q, want %q", got, want)
		}
	}
	d.untilProblem("never", `volume "image"`, "podd.test/nowhere:1", "Never")
}
