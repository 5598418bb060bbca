package csi

// StepError is of a step that has a name in the kubelet's events.
type StepError struct {
	// Volume is the kubelet's name of it, Step what failed: "MountVolume.MountDevice".
	Volume, Step string
	Err          error
}

func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// steps are the kubelet's names of what is done with one volume.
type steps struct {
	volume string
	names  [3]string
}

const staging, publishing, growing = 0, 1, 2

func stepsOf(v Volume) steps {
	if v.Block {
		return steps{v.spec(), [...]string{"MapVolume.SetUpDevice", "MapVolume.MapPodDevice", "MapVolume.NodeExpandVolume"}}
	}
	return steps{v.spec(), [...]string{"MountVolume.MountDevice", "MountVolume.SetUp", "MountVolume.NodeExpandVolume"}}
}

// failed is nil where err is.
func (s steps) failed(step int, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{s.volume, s.names[step], err}
}
