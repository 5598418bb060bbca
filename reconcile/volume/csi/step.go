package csi

// A StepError is the error of an operation that has a name in the kubelet's events.
type StepError struct {
	// Volume is the kubelet's name of the volume, and Step that of the operation, such as
	// "MountVolume.MountDevice".
	Volume, Step string
	Err          error
}

func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// steps has the kubelet's names of the operations on a volume.
type steps struct {
	volume string
	names  [3]string
}

const staging, publishing, growing = 0, 1, 2

func volumeSteps(v Volume) steps {
	if v.Block {
		return steps{v.spec(), [...]string{"MapVolume.SetUpDevice", "MapVolume.MapPodDevice", "MapVolume.NodeExpandVolume"}}
	}
	return steps{v.spec(), [...]string{"MountVolume.MountDevice", "MountVolume.SetUp", "MountVolume.NodeExpandVolume"}}
}

// failed returns a *StepError for err, or nil if err is nil.
func (s steps) failed(step int, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{s.volume, s.names[step], err}
}
