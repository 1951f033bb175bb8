// A forecast in C++ with a model that `ssno export RUN --format aoti -o model.aoti.pt2` compiled.
//
//     ./forecast model.aoti.pt2 STEPS C X [Y] < frame.f32 > forecast.f32
//
// reads one frame (C, X[, Y]) of float32 in physical units and writes STEPS frames. docs/manual/export.md says how to build it.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>
#include <vector>

int main(int count, char** words) {
  if (count < 5) return std::cerr << "usage: forecast MODEL STEPS C X [Y]\n", 2;
  c10::InferenceMode guard;
  torch::inductor::AOTIModelPackageLoader model(words[1]);
  std::vector<int64_t> shape{1};
  for (int i = 3; i < count; ++i) shape.push_back(std::atoll(words[i]));
  at::Tensor frame = at::empty(shape, at::kFloat);
  std::cin.read(static_cast<char*>(frame.data_ptr()), frame.nbytes());
  std::vector<at::Tensor> inputs{frame};
  // The metadata are JSON texts; "buffer" is the shape of the buffer, as [3, 64, 64, 1], or null without one.
  std::vector<int64_t> sizes;
  std::string text = model.get_metadata().at("buffer");
  for (char& letter : text) letter = std::isdigit(letter) ? letter : ' ';
  std::istringstream numbers(text);
  for (int64_t n; numbers >> n;) sizes.push_back(n);
  if (!sizes.empty()) inputs.push_back(at::zeros(sizes, at::kFloat));
  for (int step = 0; step < std::atoi(words[2]); ++step) {
    inputs = model.run(inputs);  // the next frame, and the buffer after it
    at::Tensor next = inputs[0].contiguous();
    std::cout.write(static_cast<const char*>(next.data_ptr()), next.nbytes());
  }
}
