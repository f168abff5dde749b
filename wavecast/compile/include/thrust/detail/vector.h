// Vectors in the memory of the GPU and of the host. The host reads and writes device memory by
// itself: the program and the emulated GPU share it.
#pragma once

#include <thrust/detail/iterators.h>
#include <thrust/detail/no_memory.h>
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

namespace thrust {

template <typename T> struct device_allocator {
    typedef T value_type;
};

template <typename T, typename Allocator = device_allocator<T>> class device_vector {
    T *memory = nullptr;
    size_t count = 0, room = 0;

   public:
    typedef T value_type;
    typedef size_t size_type;
    typedef ptrdiff_t difference_type;
    typedef T &reference;
    typedef const T &const_reference;
    typedef device_ptr<T> pointer;
    typedef device_ptr<T> iterator;
    typedef device_ptr<const T> const_pointer, const_iterator;

    device_vector() = default;
    explicit device_vector(size_t n, const T &value = T()) { resize(n, value); }
    template <typename It, typename = typename std::iterator_traits<It>::iterator_category>
    device_vector(It first, It last) {
        assign(first, last);
    }
    device_vector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
    device_vector(const device_vector &o) { assign(o.begin(), o.end()); }
    device_vector(device_vector &&o) noexcept { swap(o); }
    template <typename U, typename A> device_vector(const device_vector<U, A> &o) {
        assign(o.begin(), o.end());
    }
    template <typename U, typename A> device_vector(const std::vector<U, A> &o) {
        assign(o.begin(), o.end());
    }
    ~device_vector() { (void)hipFree(memory); }

    device_vector &operator=(const device_vector &o) {
        if (this != &o) assign(o.begin(), o.end());
        return *this;
    }
    device_vector &operator=(device_vector &&o) noexcept {
        swap(o);
        return *this;
    }
    template <typename Other> device_vector &operator=(const Other &o) {
        assign(o.begin(), o.end());
        return *this;
    }
    template <typename It, typename = typename std::iterator_traits<It>::iterator_category>
    void assign(It first, It last) {
        size_t n = (size_t)(last - first);
        if (n > room) grow(n, false);
        for (size_t i = 0; i < n; ++i) memory[i] = first[i];
        count = n;
    }
    void assign(size_t n, const T &value) {
        clear();
        resize(n, value);
    }
    void resize(size_t n, const T &value = T()) {
        if (n > room) grow(n, true);
        if (n > count) std::uninitialized_fill(memory + count, memory + n, value);
        count = n;
    }
    void reserve(size_t n) {
        if (n > room) grow(n, true);
    }
    void push_back(const T &value) {
        if (count == room) grow(room ? 2 * room : 16, true);
        memory[count++] = value;
    }
    void pop_back() { --count; }
    void clear() { count = 0; }
    void shrink_to_fit() {}
    void swap(device_vector &o) noexcept {
        std::swap(memory, o.memory);
        std::swap(count, o.count);
        std::swap(room, o.room);
    }
    iterator erase(iterator first, iterator last) {
        std::copy(last.raw, memory + count, first.raw);
        count -= last - first;
        return first;
    }
    iterator erase(iterator at) { return erase(at, at + 1); }
    template <typename It> iterator insert(iterator at, It first, It last) {
        size_t place = at - begin(), more = last - first;
        reserve(count + more);
        std::copy_backward(memory + place, memory + count, memory + count + more);
        for (size_t i = 0; i < more; ++i) memory[place + i] = first[i];
        count += more;
        return begin() + place;
    }

    size_t size() const { return count; }
    size_t capacity() const { return room; }
    bool empty() const { return count == 0; }
    pointer data() { return pointer(memory); }
    const_pointer data() const { return const_pointer(memory); }
    T &operator[](size_t i) { return memory[i]; }
    const T &operator[](size_t i) const { return memory[i]; }
    T &front() { return memory[0]; }
    T &back() { return memory[count - 1]; }
    const T &front() const { return memory[0]; }
    const T &back() const { return memory[count - 1]; }
    iterator begin() { return iterator(memory); }
    iterator end() { return iterator(memory + count); }
    const_iterator begin() const { return const_iterator(memory); }
    const_iterator end() const { return const_iterator(memory + count); }
    const_iterator cbegin() const { return begin(); }
    const_iterator cend() const { return end(); }
    reverse_iterator<iterator> rbegin() { return reverse_iterator<iterator>(end()); }
    reverse_iterator<iterator> rend() { return reverse_iterator<iterator>(begin()); }
    operator std::vector<T>() const { return std::vector<T>(memory, memory + count); }

   private:
    void grow(size_t n, bool keep) {
        T *larger = nullptr;
        if (hipMalloc((void **)&larger, n * sizeof(T)) != hipSuccess) thrust::__wc_no_memory();
        if (keep) std::uninitialized_copy(memory, memory + count, larger);
        (void)hipFree(memory);
        memory = larger;
        room = n;
    }
};

template <typename T, typename Allocator = std::allocator<T>>
class host_vector : public std::vector<T, Allocator> {
    typedef std::vector<T, Allocator> Base;

   public:
    using Base::Base;
    host_vector() = default;
    host_vector(const Base &o) : Base(o) {}
    template <typename U, typename A> host_vector(const device_vector<U, A> &o) { *this = o; }
    template <typename U, typename A> host_vector &operator=(const device_vector<U, A> &o) {
        Base::resize(o.size());
        for (size_t i = 0; i < o.size(); ++i) (*this)[i] = o[i];
        return *this;
    }
};

template <typename T, typename A = device_allocator<T>> using universal_vector = device_vector<T, A>;

template <typename T, typename A, typename B>
bool operator==(const device_vector<T, A> &a, const device_vector<T, B> &b) {
    return a.size() == b.size() && std::equal(a.begin().raw, a.end().raw, b.begin().raw);
}
template <typename T, typename A, typename B>
bool operator==(const std::vector<T, A> &a, const device_vector<T, B> &b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin().raw);
}
template <typename T, typename A, typename B>
bool operator==(const device_vector<T, A> &a, const std::vector<T, B> &b) {
    return b == a;
}

template <typename T> device_ptr<T> device_malloc(size_t n) {
    T *memory = nullptr;
    if (hipMalloc((void **)&memory, n * sizeof(T)) != hipSuccess) thrust::__wc_no_memory();
    return device_ptr<T>(memory);
}
template <typename T> void device_free(device_ptr<T> pointer) { (void)hipFree((void *)pointer.raw); }

}  // namespace thrust
