package view

import v1 "k8s.io/api/core/v1"

// pressureMessages are the kubelet's reason and message of each pressure condition,
// without and with pressure, and the reason of the event when it changes.
var pressureMessages = map[v1.NodeConditionType][2][3]string{
	v1.NodeMemoryPressure: {
		{"KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"},
		{"KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"},
	},
	v1.NodeDiskPressure: {
		{"KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"},
		{"KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"},
	},
	v1.NodePIDPressure: {
		{"KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"},
		{"KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"},
	},
}

// PressureKinds is in the order of the kubelet's conditions.
var PressureKinds = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// PressureMessage returns the reason and message of a pressure condition, and the reason
// of the event when it changes.
func PressureMessage(kind v1.NodeConditionType, exists bool) [3]string {
	if exists {
		return pressureMessages[kind][1]
	}
	return pressureMessages[kind][0]
}
