package render

import (
	"fmt"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ImageUser is the user in an image's config: a number, else a name, else
// neither, which is root.
type ImageUser struct {
	UID  *int64
	Name string
}

func (u *ImageUser) cri() (*cri.Int64Value, string) {
	switch {
	case u.UID != nil:
		return &cri.Int64Value{Value: *u.UID}, ""
	case u.Name != "":
		return nil, u.Name
	}
	return &cri.Int64Value{}, ""
}

// verifyNonRoot refuses a container that must not run as root and would, or
// that names its user in a way only the image's passwd file can tell.
func verifyNonRoot(in *ContainerInput) error {
	sc := effective(&in.Pod.Spec.Spec, in.Container)
	if !isTrue(sc.RunAsNonRoot) {
		return nil
	}
	why := ""
	switch u := in.ImageUser; {
	case sc.RunAsUser != nil:
		if *sc.RunAsUser == 0 {
			why = "runAsUser is 0"
		}
	case u == nil:
		// The runtime knows and podd does not: running it might be as root.
		why = "the image's user is not known; set runAsUser"
	case u.UID == nil && u.Name != "":
		why = fmt.Sprintf("the image's user %q is not a number; set runAsUser", u.Name)
	case u.UID == nil || *u.UID == 0:
		why = "the image runs as root; set runAsUser"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("checking the user of container %q: runAsNonRoot: %s", in.Container.Name, why)
}
