package render

import (
	"fmt"
	"math"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// imageUser returns the numeric ID or the name of the image's user.
func imageUser(u *runtime.ImageUser) (*cri.Int64Value, string) {
	switch {
	case u.UID != nil:
		return &cri.Int64Value{Value: *u.UID}, ""
	case u.Name != "":
		return nil, u.Name
	}
	return &cri.Int64Value{}, ""
}

// verifyNonRoot returns an error if a container has runAsNonRoot and would run as root. It also
// returns an error if the user is a name, because only the passwd file of the image contains its
// ID. The messages begin like the kubelet's messages, because users search for them.
func verifyNonRoot(in *ContainerInput) error {
	sc := effectiveSecurity(&in.Pod.Object.Spec, in.Container)
	if !isTrue(sc.RunAsNonRoot) {
		return nil
	}
	cause := ""
	switch u := in.ImageUser; {
	case sc.RunAsUser != nil:
		if *sc.RunAsUser == 0 {
			cause = "container's runAsUser breaks non-root policy: it is 0; set another runAsUser, or remove runAsNonRoot"
		}
	case u == nil:
		// podd does not know the user, who may be root.
		cause = "the image's user is unknown; set runAsUser"
	case u.UID == nil && u.Name != "":
		cause = fmt.Sprintf("container has runAsNonRoot and image has non-numeric user (%q), which may be root; set runAsUser", truncate(u.Name))
	case u.UID == nil || *u.UID == 0:
		cause = "container has runAsNonRoot and image will run as root; set runAsUser, or use an image with a user"
	case *u.UID < 0 || *u.UID > math.MaxInt32:
		// Runtimes use only the lower 32 bits, which may be the ID of root (CVE-2024-40635).
		cause = fmt.Sprintf("the image's user %d is out of range; set runAsUser", *u.UID)
	}
	if cause == "" {
		return nil
	}
	return fmt.Errorf("checking the user of container %q: %s", in.Container.Name, cause)
}

// truncate returns at most 64 bytes of text from an image.
func truncate(text string) string {
	const limit = 64
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}
