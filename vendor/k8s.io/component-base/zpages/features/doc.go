/*
Copyright 2024 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package features contains a separate feature set specifically designed for
// managing zpages related features. These feature gates control the
// availability and behavior of various zpages within Kubernetes components.
// New zpages added to Kubernetes components should utilize this feature set
// to ensure proper management of their availability.
package features
