package render

import (
	"fmt"
	"math"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

func userOf(u *runtime.ImageUser) (*cri.Int64Value, string) {
	switch {
	case u.UID != nil:
		return &cri.Int64Value{Value: *u.UID}, ""
	case u.Name != "":
		return nil, u.Name
	}
	return &cri.Int64Value{}, ""
}

// verifyNonRoot refuses a container that must not run as root and would, or
// that names its user in a way only the image's passwd file can tell. The first
// words of each reason are the kubelet's, which people search for.
func verifyNonRoot(in *ContainerInput) error {
	sc := effective(&in.Pod.Spec.Spec, in.Container)
	if !isTrue(sc.RunAsNonRoot) {
		return nil
	}
	why := ""
	switch u := in.ImageUser; {
	case sc.RunAsUser != nil:
		if *sc.RunAsUser == 0 {
			why = "container's runAsUser breaks non-root policy: it is 0; set another, or remove runAsNonRoot"
		}
	case u == nil:
		// The runtime knows and podd does not: running it might be as root.
		why = "the image's user is not known; set runAsUser"
	case u.UID == nil && u.Name != "":
		why = fmt.Sprintf("container has runAsNonRoot and image has non-numeric user (%q), so that nobody knows whether it is root; set runAsUser", clip(u.Name))
	case u.UID == nil || *u.UID == 0:
		why = "container has runAsNonRoot and image will run as root; set runAsUser, or use an image with a user"
	case *u.UID < 0 || *u.UID > math.MaxInt32:
		// Runtimes keep the lower 32 bits, which may be root's (CVE-2024-40635).
		why = fmt.Sprintf("the image's user %d is out of range; set runAsUser", *u.UID)
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("checking the user of container %q: %s", in.Container.Name, why)
}

// clip shortens what an image says.
func clip(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
