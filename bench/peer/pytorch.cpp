// SPDX-License-Identifier: BSL-1.0
//
// The functions of MKL and oneDNN that the benchmarks call. Each of oneDNN's is defined here as a
// jump to its address in PyTorch's library, so that the C++ interface, which is made of inline
// functions, links. PIPE_TORCH: the folder of the Python package.
#include "pytorch.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <oneapi/dnnl/dnnl.h>

#include <pipe/backend/host/isa.hpp>

#define PIPE_BENCH_ONEDNN(X)                                 \
  X(dnnl_convolution_backward_data_primitive_desc_create)    \
  X(dnnl_convolution_backward_weights_primitive_desc_create) \
  X(dnnl_convolution_forward_primitive_desc_create)          \
  X(dnnl_engine_create)                                      \
  X(dnnl_engine_destroy)                                     \
  X(dnnl_matmul_primitive_desc_create)                       \
  X(dnnl_memory_create_v2)                                   \
  X(dnnl_memory_desc_clone)                                  \
  X(dnnl_memory_desc_create_with_tag)                        \
  X(dnnl_memory_desc_destroy)                                \
  X(dnnl_memory_desc_query)                                  \
  X(dnnl_memory_desc_query_v2)                               \
  X(dnnl_memory_destroy)                                     \
  X(dnnl_memory_get_engine)                                  \
  X(dnnl_memory_get_memory_desc)                             \
  X(dnnl_primitive_attr_create)                              \
  X(dnnl_primitive_attr_destroy)                             \
  X(dnnl_primitive_create)                                   \
  X(dnnl_primitive_desc_destroy)                             \
  X(dnnl_primitive_desc_query_md)                            \
  X(dnnl_primitive_destroy)                                  \
  X(dnnl_primitive_execute)                                  \
  X(dnnl_reorder_primitive_desc_create)                      \
  X(dnnl_stream_create)                                      \
  X(dnnl_stream_destroy)                                     \
  X(dnnl_stream_wait)                                        \
  X(dnnl_version)

#define PIPE_BENCH_JUMP(NAME)                                                                    \
  extern "C" {                                                                                   \
  void* NAME##_address;                                                                          \
  }                                                                                              \
  asm(".pushsection .text\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME ": jmp *" #NAME \
      "_address(%rip)\n.popsection");
PIPE_BENCH_ONEDNN(PIPE_BENCH_JUMP)

namespace bench {
namespace {

/// Reads `count` items at `offset` of a file.
template <class T>
std::vector<T> read(std::ifstream& file, std::size_t offset, std::size_t count) {
  std::vector<T> items(count);
  file.seekg(std::streamoff(offset));
  file.read(reinterpret_cast<char*>(items.data()), std::streamsize(count * sizeof(T)));
  if (!file) throw std::runtime_error("PyTorch's library is not whole");
  return items;
}

/// Fills in the addresses of functions of a loaded library by name, local ones too.
void find(void* library, std::map<std::string_view, void**> wanted) {
  link_map* loaded = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &loaded);
  std::ifstream file(loaded->l_name, std::ios::binary);
  auto const header = read<ElfW(Ehdr)>(file, 0, 1)[0];
  auto const sections = read<ElfW(Shdr)>(file, header.e_shoff, header.e_shnum);
  for (auto const& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    auto const& names_section = sections[section.sh_link];
    auto const names = read<char>(file, names_section.sh_offset, names_section.sh_size);
    for (auto const& symbol :
         read<ElfW(Sym)>(file, section.sh_offset, section.sh_size / sizeof(ElfW(Sym))))
      if (symbol.st_shndx != SHN_UNDEF)
        if (auto const of = wanted.find(&names[symbol.st_name]); of != wanted.end()) {
          *of->second = reinterpret_cast<void*>(loaded->l_addr + symbol.st_value);
          wanted.erase(of);
        }
  }
  if (!wanted.empty())
    throw std::runtime_error(std::string(loaded->l_name) + " has no function " +
                             std::string(wanted.begin()->first));
}

}  // namespace

void restart_on_one_core(char** arguments) {
  if (std::getenv("PIPE_BENCH_PEERS_ARE_SET_UP") != nullptr) return;
  setenv("PIPE_BENCH_PEERS_ARE_SET_UP", "1", 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  setenv("GLIBC_TUNABLES",
         "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:"
         "glibc.malloc.trim_threshold=8589934592",
         1);
  if (pp::host::best_isa() == pp::host::isa::avx512) setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
  execv("/proc/self/exe", arguments);
}

pytorch const& load_pytorch() {
  static pytorch const loaded = [] {
    // Deep: its own sgemm_ comes before another library's.
    void* const library =
        dlopen(PIPE_TORCH "/lib/libtorch_cpu.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == nullptr) throw std::runtime_error(dlerror());
    void *multiply = nullptr, *version_of_mkl = nullptr;
#define PIPE_BENCH_ENTRY(NAME) {#NAME, &NAME##_address},
    find(library, {PIPE_BENCH_ONEDNN(PIPE_BENCH_ENTRY){"sgemm_", &multiply},
                   {"MKL_Get_Version_String", &version_of_mkl}});
    std::array<char, 256> mkl{};
    reinterpret_cast<void (*)(char*, int)>(version_of_mkl)(mkl.data(), int(mkl.size()) - 1);
    std::string name = mkl.data();  // ends in spaces
    name.erase(name.find_last_not_of(' ') + 1);
    dnnl_version_t const* const v = dnnl_version();
    return pytorch{reinterpret_cast<sgemm*>(multiply), name,
                   "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
                       std::to_string(v->patch)};
  }();
  return loaded;
}

}  // namespace bench
